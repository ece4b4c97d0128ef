import { readFileSync } from "node:fs";
import { cpus } from "node:os";
import type { Measurement } from "./problem.ts";

/** What a contestant says of how it ran: a line of JSON before its first measurement, from rank 0. */
export interface Conditions {
  /** Processors that a rank may run on. */
  readonly processors: number;
  /** Processors of the machine. */
  readonly of: number;
  /**
   * How Open MPI copies between processes of one machine, as it is in effect: cma, emulated, none. Empty: not asked of
   * it.
   */
  readonly singleCopy?: string;
  /** Of a library that has no other way to say it. */
  readonly version?: string;
}

/** All that a contestant prints. */
export interface Report {
  readonly conditions: Conditions;
  readonly measurements: readonly Measurement[];
}

/** How many bits are set in a mask of processors as Linux prints it, such as `3` or `0000000f,ffffffff`. */
export const countProcessors = (mask: string): number =>
  [...mask].reduce(
    (sum, digit) => sum + [0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4][Number.parseInt(digit, 16)]!,
    0,
  );

/** Of this process: what it is bound to, where the system binds processes. */
export const conditionsHere = (): Conditions => {
  const of = cpus().length;
  if (process.platform !== "linux") return { processors: of, of };
  const mask = /^Cpus_allowed:\s*(\S+)/m.exec(readFileSync("/proc/self/status", "utf8"))![1]!;
  // The mask has bits of processors that the machine could have, too.
  return { processors: Math.min(of, countProcessors(mask.replaceAll(",", ""))), of };
};

/** @throws Error where the first line does not say how the contestant ran: a row without it could not be judged. */
export const readReport = (stdout: string): Report => {
  const [first, ...others] = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line || "{}") as Conditions | Measurement);
  if (first === undefined || !("processors" in first))
    throw new Error("the contestant did not say on how many processors its ranks run");
  return { conditions: first, measurements: others as Measurement[] };
};

/** In words for a row: "bound to 1 of 2 processors, single copy by cma". */
export const describeConditions = ({ processors, of, singleCopy = "" }: Conditions): string =>
  [
    processors < of ? `bound to ${processors} of ${of} processors` : "not bound",
    ...(singleCopy === "" ? [] : [singleCopy === "none" ? "no single copy" : `single copy by ${singleCopy}`]),
  ].join(", ");

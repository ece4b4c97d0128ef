import { readFileSync } from "node:fs";
import { cpus } from "node:os";
import type { Measurement } from "./problem.ts";

/** Conditions that a contestant ran under: a line of JSON that rank 0 prints before its first measurement. */
export interface Conditions {
  /** Number of processors that a rank may run on. */
  readonly processors: number;
  /** Number of processors of the machine. */
  readonly of: number;
  /** How Open MPI copies between processes of one machine at run time: cma, emulated, none. Empty: not queried. */
  readonly singleCopy?: string;
  /** Version of the library, if this line is its only way to report the version. */
  readonly version?: string;
}

/** Complete output of a contestant. */
export interface Report {
  readonly conditions: Conditions;
  readonly measurements: readonly Measurement[];
}

/** Number of bits set in a mask of processors as Linux prints the mask, such as `3` or `0000000f,ffffffff`. */
export const countProcessors = (mask: string): number =>
  [...mask].reduce(
    (sum, digit) => sum + [0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4][Number.parseInt(digit, 16)]!,
    0,
  );

/** Conditions of this process: its processor affinity, if the system binds processes. */
export const conditionsHere = (): Conditions => {
  const of = cpus().length;
  if (process.platform !== "linux") return { processors: of, of };
  const mask = /^Cpus_allowed:\s*(\S+)/m.exec(readFileSync("/proc/self/status", "utf8"))![1]!;
  // The mask also has bits for processors that could be added to the machine.
  return { processors: Math.min(of, countProcessors(mask.replaceAll(",", ""))), of };
};

/**
 * @throws Error if the first line does not hold the contestant's conditions: a row without conditions could not be
 * judged.
 */
export const readReport = (stdout: string): Report => {
  const [first, ...others] = stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line || "{}") as Conditions | Measurement);
  if (first === undefined || !("processors" in first))
    throw new Error("the contestant did not say on how many processors its ranks run");
  return { conditions: first, measurements: others as Measurement[] };
};

/** Conditions in words for a row: "bound to 1 of 2 processors, single copy by cma". */
export const describeConditions = ({ processors, of, singleCopy = "" }: Conditions): string =>
  [
    processors < of ? `bound to ${processors} of ${of} processors` : "not bound",
    ...(singleCopy === "" ? [] : [singleCopy === "none" ? "no single copy" : `single copy by ${singleCopy}`]),
  ].join(", ");

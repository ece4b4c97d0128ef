import { readFileSync } from "node:fs";
import { cpus } from "node:os";
import type { Measurement } from "./problem.ts";

/** Conditions under which an implementation ran, printed by rank 0 as a line of JSON before its first measurement. */
export interface Conditions {
  /** Number of processors that a rank may run on. */
  readonly processors: number;
  /** Number of processors of the machine. */
  readonly of: number;
  /** Single-copy mechanism of Open MPI between processes of one machine: cma, emulated or none. Empty: not queried. */
  readonly singleCopy?: string;
  /** Version of the library. Absent: the page gets the version from another source. */
  readonly version?: string;
}

/** Complete output of an implementation. */
export interface Report {
  readonly conditions: Conditions;
  readonly measurements: readonly Measurement[];
}

/** Returns the number of bits set in a processor mask as Linux prints it, such as `3` or `0000000f,ffffffff`. */
export const countProcessors = (mask: string): number =>
  [...mask].reduce(
    (sum, digit) => sum + [0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4][Number.parseInt(digit, 16)]!,
    0,
  );

/** Returns the conditions of this process: its processor affinity, if the system binds processes. */
export const conditionsHere = (): Conditions => {
  const of = cpus().length;
  if (process.platform !== "linux") return { processors: of, of };
  const mask = /^Cpus_allowed:\s*(\S+)/m.exec(readFileSync("/proc/self/status", "utf8"))![1]!;
  // The mask also has bits for processors that could be added to the machine.
  return { processors: Math.min(of, countProcessors(mask.replaceAll(",", ""))), of };
};

/**
 * Parses an implementation's output.
 *
 * @throws Error if the first line has no conditions, because times without conditions cannot be compared.
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

/** Describes conditions for a row of the page, such as "bound to 1 of 2 processors, single copy by cma". */
export const describeConditions = ({ processors, of, singleCopy = "" }: Conditions): string =>
  [
    processors < of ? `bound to ${processors} of ${of} processors` : "not bound",
    ...(singleCopy === "" ? [] : [singleCopy === "none" ? "no single copy" : `single copy by ${singleCopy}`]),
  ].join(", ");

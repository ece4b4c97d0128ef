import type { Segment } from "./charts/stacked-bar.ts";
import type { OutsideRow, ProfileReport, RowPhase } from "./profile-report.ts";
import type { Kind } from "./tokens.ts";

/**
 * Kind of mark for each phase. Computation for communication, such as packing, has the color of communication; waiting
 * for communication has a different color.
 */
export const kindOfPhase: Readonly<Record<RowPhase, Kind>> = {
  forward: "forward",
  backward: "backward",
  update: "update",
  communication: "communication",
  other: "other",
};

/** Displayed names of the kinds of time outside operators. */
export const outsideNames: Readonly<Record<OutsideRow["kind"], string>> = {
  waiting: "waiting for communication",
  data: "waiting for a batch",
  host: "host: starts and preparations",
  between: "between kernels",
};

/** Explanations of the kinds of time outside operators, for tooltips. */
export const outsideMeanings: Readonly<Record<OutsideRow["kind"], string>> = {
  waiting: "for collectives, while nothing is computed",
  data: "until the batch is there",
  host: "work of the rank's own thread: starting collectives, compiling graphs",
  between: "from kernel to kernel, results that are read, and what other programs take of this core",
};

/**
 * Splits a step into segments: forward, backward, update, computation for communication, operators without a phase
 * (omitted if there are none), exposed communication, and other time outside operators. The segments are computed from
 * shares of the total time of all ranks, so that they add up to the step.
 */
export const stepSegments = ({ operators, outside, step }: ProfileReport): Segment[] => {
  const sum = (rows: readonly { readonly share: number }[]): number =>
    rows.reduce((total, { share }) => total + share, 0) * step.median;
  const phaseSeconds = (phase: RowPhase): number => sum(operators.filter((row) => row.phase === phase));
  const [packing, others] = [phaseSeconds("communication"), phaseSeconds("other")];
  return [
    { name: "forward", kind: "forward", seconds: phaseSeconds("forward") },
    { name: "backward", kind: "backward", seconds: phaseSeconds("backward") },
    { name: "update", kind: "update", seconds: phaseSeconds("update") },
    ...(packing > 0 ? [{ name: "packing for communication", kind: "communication", seconds: packing } as const] : []),
    { name: "exposed communication", kind: "exposed", seconds: sum(outside.filter(({ kind }) => kind === "waiting")) },
    ...(others > 0 ? [{ name: "operators without a phase", kind: "other", seconds: others } as const] : []),
    { name: "outside of kernels", kind: "other", seconds: sum(outside.filter(({ kind }) => kind !== "waiting")) },
  ];
};

import type { Segment } from "./charts/stacked-bar.ts";
import type { OutsideRow, ProfileReport, RowPhase } from "./profile-report.ts";
import type { Kind } from "./tokens.ts";

/** As a mark: what is computed for communication has the colour of communication, which waiting for it has not. */
export const kindOfPhase: Readonly<Record<RowPhase, Kind>> = {
  forward: "forward",
  backward: "backward",
  update: "update",
  communication: "communication",
  other: "other",
};

/** What lies outside of operators, in words. */
export const outsideNames: Readonly<Record<OutsideRow["kind"], string>> = {
  waiting: "waiting for communication",
  data: "waiting for a batch",
  host: "host: starts and preparations",
  between: "between kernels",
};

/** The same in a sentence, for whoever asks what it is. */
export const outsideMeanings: Readonly<Record<OutsideRow["kind"], string>> = {
  waiting: "for collectives, while nothing is computed",
  data: "until the batch is there",
  host: "what the rank's thread does itself: collectives are started, graphs compiled",
  between: "from kernel to kernel, results that are read, and what other programs take of this core",
};

/**
 * Split a step into forward, backward, update, what is computed for communication and operators without a phase (left
 * out where there are none), exposed communication, and what else lies outside of operators. By shares of all ranks'
 * time, so that it adds up to the step.
 */
export const stepSegments = ({ operators, outside, step }: ProfileReport): Segment[] => {
  const sum = (rows: readonly { readonly share: number }[]): number =>
    rows.reduce((total, { share }) => total + share, 0) * step.median;
  const ofPhase = (phase: RowPhase): number => sum(operators.filter((row) => row.phase === phase));
  const [packing, others] = [ofPhase("communication"), ofPhase("other")];
  return [
    { name: "forward", kind: "forward", seconds: ofPhase("forward") },
    { name: "backward", kind: "backward", seconds: ofPhase("backward") },
    { name: "update", kind: "update", seconds: ofPhase("update") },
    ...(packing > 0 ? [{ name: "packing for communication", kind: "communication", seconds: packing } as const] : []),
    { name: "exposed communication", kind: "exposed", seconds: sum(outside.filter(({ kind }) => kind === "waiting")) },
    ...(others > 0 ? [{ name: "operators of no phase", kind: "other", seconds: others } as const] : []),
    { name: "outside of kernels", kind: "other", seconds: sum(outside.filter(({ kind }) => kind !== "waiting")) },
  ];
};

import type { Segment } from "./charts/stacked-bar.ts";
import type { Phase } from "@skein/tensor-core";
import type { ProfileReport } from "./profile-report.ts";
import type { Kind } from "./tokens.ts";

/** As a mark: what is computed for communication has the colour of communication, which waiting for it has not. */
export const kindOfPhase: Readonly<Record<Phase, Kind>> = {
  forward: "forward",
  backward: "backward",
  update: "update",
  communication: "communication",
  other: "other",
};

/**
 * Split a step into forward, backward, update, what is computed for communication (left out where nothing is), exposed communication, and the rest.
 *
 * Each operator counts with the rank that takes longest, so on uneven ranks the parts may add up to more than the step: then there is no rest.
 */
export const stepSegments = ({ operators, exposedSeconds, step }: ProfileReport): Segment[] => {
  const ofPhase = (phase: Phase): number => operators.reduce((sum, row) => sum + (row.phase === phase ? row.seconds.median : 0), 0);
  const packing = ofPhase("communication");
  const parts: Segment[] = [
    { name: "forward", kind: "forward", seconds: ofPhase("forward") },
    { name: "backward", kind: "backward", seconds: ofPhase("backward") },
    { name: "update", kind: "update", seconds: ofPhase("update") },
    ...(packing > 0 ? [{ name: "packing for communication", kind: "communication", seconds: packing } as const] : []),
    { name: "exposed communication", kind: "exposed", seconds: exposedSeconds.median },
  ];
  const known = parts.reduce((sum, { seconds }) => sum + seconds, 0);
  return [...parts, { name: "other", kind: "other", seconds: Math.max(0, step.median - known) }];
};

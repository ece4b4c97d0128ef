import type { ElementRange, Region, Step } from "./schedule.ts";

/**
 * Mapping of each region of an inner schedule to a region of the outer schedule and an element offset. A region that is
 * absent from the mapping maps to itself, with offset 0.
 */
export type Bases = { readonly [R in Region]?: Pick<ElementRange, "region" | "offset"> };

/**
 * Embeds the rounds of a small schedule in a larger schedule: maps peers through `members` and regions through `bases`.
 * Omits a copy if its source and target become equal.
 */
export const embed = (rounds: readonly (readonly Step[])[], bases: Bases, members?: readonly number[]): Step[][] => {
  const range = ({ region, offset, count }: ElementRange): ElementRange => {
    const base = bases[region];
    return base === undefined
      ? { region, offset, count }
      : { region: base.region, offset: base.offset + offset, count };
  };
  const peerOf = (peer: number): number => (members === undefined ? peer : members[peer]!);
  const placed = (step: Step): Step => {
    switch (step.action) {
      case "copy":
        return { ...step, source: range(step.source), target: range(step.target) };
      case "clear":
        return { ...step, target: range(step.target) };
      case "fold":
        return { ...step, sources: step.sources.map(range), target: range(step.target) };
      case "send":
        return { ...step, peer: peerOf(step.peer), source: range(step.source) };
      case "receive":
        return step.combine === "reduce"
          ? { ...step, peer: peerOf(step.peer), target: range(step.target), own: range(step.own) }
          : { ...step, peer: peerOf(step.peer), target: range(step.target) };
    }
  };
  const stays = (step: Step): boolean =>
    step.action === "copy" && step.source.region === step.target.region && step.source.offset === step.target.offset;
  return rounds.map((steps) => steps.map(placed).filter((step) => !stays(step)));
};

/**
 * Returns `rounds` followed by empty rounds up to `length` rounds, so that ranks with fewer rounds stay aligned with
 * the other ranks.
 */
export const padded = (rounds: readonly Step[][], length: number): Step[][] =>
  Array.from({ length }, (_, round) => rounds[round] ?? []);

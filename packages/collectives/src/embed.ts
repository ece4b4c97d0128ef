import type { ElementRange, Region, Step } from "./schedule.ts";

/**
 * Where a region of an inner schedule lies in the outer one: elements before it, and in which region. Default: the
 * region itself.
 */
export type Bases = { readonly [R in Region]?: Pick<ElementRange, "region" | "offset"> };

/**
 * Let the rounds of a small schedule run as a part of a larger one: peers are those of `members`, regions lie at their
 * bases. A copy that would end where it began is left out.
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

/** `rounds`, and empty ones until there are `length`: ranks with less to do keep step with the others. */
export const padded = (rounds: readonly Step[][], length: number): Step[][] =>
  Array.from({ length }, (_, round) => rounds[round] ?? []);

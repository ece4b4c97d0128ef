import { type OutsideRow, type RankStep, type Times, worldSeconds, type WorldStep } from "@skein/report";
import { attribute, type Attribution, type KernelClock } from "../trace/attribution.ts";
import { slowest, timesOf } from "./times.ts";

/** What recording costs: in a kernel's span, and beside each span. */
export interface RecordingCost {
  readonly clock: KernelClock;
  readonly inKernelSeconds: number;
  readonly besideSpanSeconds: number;
}

/**
 * What recording a span costs, by where its times are from. The host looks at its clock on both sides of a kernel, and
 * one of the looks lies within the span; a device takes its own times, and no kernel of it is longer for what the host
 * does.
 */
export const recordingCost = (overheadSeconds: number, clock: KernelClock): RecordingCost => ({
  clock,
  inKernelSeconds: clock === "host" ? overheadSeconds / 2 : 0,
  besideSpanSeconds: clock === "host" ? overheadSeconds / 2 : overheadSeconds,
});

/** Less what recording has cost; never less than nothing. */
const corrected = (step: RankStep, cost: RecordingCost): Attribution => {
  const { compute, between, ...others } = attribute(step, cost.clock);
  const calls = new Map<string, number>();
  for (const { track, name } of step.spans) if (track === "compute") calls.set(name, (calls.get(name) ?? 0) + 1);
  const less = (seconds: number, cost: number): number => Math.max(0, seconds - cost);
  return {
    compute: new Map(
      [...compute].map(([name, seconds]) => [name, less(seconds, calls.get(name)! * cost.inKernelSeconds)]),
    ),
    ...others,
    between: less(between, step.spans.length * cost.besideSpanSeconds),
  };
};

const outsideKinds = ["waiting", "data", "host", "between"] as const satisfies readonly OutsideRow["kind"][];

const wholeOf = ({ compute, waiting, data, host, between }: Attribution): number =>
  [...compute.values()].reduce((sum, seconds) => sum + seconds, waiting + data + host + between);

/**
 * The half of some steps whose times lie in the middle: what a pause or a hiccup has made long counts no more than in a
 * median.
 */
const middleHalf = (steps: readonly WorldStep[]): ReadonlySet<WorldStep> => {
  const ordered = steps.toSorted((a, b) => worldSeconds(a) - worldSeconds(b));
  const left = Math.floor(ordered.length / 4);
  return new Set(ordered.slice(left, ordered.length - left));
};

/** What parts of a step take. */
export interface StepShares {
  /** Of the time of all ranks, by the names of spans; with those of `outside` they add up to 1. */
  readonly operators: ReadonlyMap<string, number>;
  readonly outside: readonly OutsideRow[];
  /** Waiting for communication in a step, mean of ranks. */
  readonly exposedSeconds: Times;
}

/**
 * Share the time of all ranks out to operators and to what lies outside of them, over the middle half of the steps.
 * Sums over the same steps and ranks, unlike medians of parts, add up to the whole.
 */
export const stepShares = (steps: readonly WorldStep[], cost: RecordingCost): StepShares => {
  const attributed = steps.map((step) => step.map((rank) => corrected(rank, cost)));
  const chosen = middleHalf(steps);
  const summed = attributed.filter((_, i) => chosen.has(steps[i]!)).flat();
  // A clock that stands still leaves nothing to share out.
  const whole = summed.reduce((sum, one) => sum + wholeOf(one), 0) || 1;
  const seconds = new Map<string, number>();
  for (const { compute } of summed)
    for (const [name, own] of compute) seconds.set(name, (seconds.get(name) ?? 0) + own);
  // sums in another order differ in their last digit
  const shareOf = (part: number): number => Math.min(1, part / whole);
  const numRanks = steps[0]?.length ?? 0;
  const outside = outsideKinds.map(
    (kind): OutsideRow => ({
      kind,
      seconds: slowest(Array.from({ length: numRanks }, (_, rank) => attributed.map((ranks) => ranks[rank]![kind]))),
      share: shareOf(summed.reduce((sum, one) => sum + one[kind], 0)),
    }),
  );
  const exposed = attributed.map((ranks) => ranks.reduce((sum, { waiting }) => sum + waiting, 0) / ranks.length);
  return {
    exposedSeconds: timesOf(exposed),
    operators: new Map([...seconds].map(([name, own]) => [name, shareOf(own)])),
    outside: outside.toSorted((a, b) => b.share - a.share),
  };
};

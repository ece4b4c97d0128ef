import { type OutsideRow, type RankStep, type Times, worldSeconds, type WorldStep } from "@skein/report";
import { attribute, type Attribution, type KernelClock } from "../trace/attribution.ts";
import { slowest, timesOf } from "./times.ts";

/** Cost of recording a kernel span: seconds inside the span, and seconds outside the span. */
export interface RecordingCost {
  readonly clock: KernelClock;
  readonly inKernelSeconds: number;
  readonly besideSpanSeconds: number;
}

/**
 * Returns the cost of recording a span. The host clock is read before and after a kernel, so that one of the two reads
 * is inside the span. A device measures kernel times, so that recording does not lengthen kernel spans.
 */
export const recordingCost = (overheadSeconds: number, clock: KernelClock): RecordingCost => ({
  clock,
  inKernelSeconds: clock === "host" ? overheadSeconds / 2 : 0,
  besideSpanSeconds: clock === "host" ? overheadSeconds / 2 : overheadSeconds,
});

/** Returns the times of a rank's step minus the cost of recording; each time is at least 0. */
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

/** Returns the half of the steps with the middle durations, so that pauses have no more influence than on a median. */
const middleHalf = (steps: readonly WorldStep[]): ReadonlySet<WorldStep> => {
  const ordered = steps.toSorted((a, b) => worldSeconds(a) - worldSeconds(b));
  const left = Math.floor(ordered.length / 4);
  return new Set(ordered.slice(left, ordered.length - left));
};

/** Shares of the step time by operator and by other activities. */
export interface StepShares {
  /**
   * Share of each operator in the total time of all ranks, 0 to 1, by span name. The shares of operators and of
   * `outside` add up to 1.
   */
  readonly operators: ReadonlyMap<string, number>;
  readonly outside: readonly OutsideRow[];
  /** Waiting time for communication per step, mean over ranks. */
  readonly exposedSeconds: Times;
}

/**
 * Computes the share of each operator, and of time outside operators, in the total time of all ranks. Only the middle
 * half of the steps is used. Uses sums instead of medians, because sums over the same steps and ranks add up to the
 * total.
 */
export const stepShares = (steps: readonly WorldStep[], cost: RecordingCost): StepShares => {
  const attributed = steps.map((step) => step.map((rank) => corrected(rank, cost)));
  const chosen = middleHalf(steps);
  const summed = attributed.filter((_, i) => chosen.has(steps[i]!)).flat();
  // With a clock that does not advance, the total would be 0.
  const whole = summed.reduce((sum, one) => sum + wholeOf(one), 0) || 1;
  const seconds = new Map<string, number>();
  for (const { compute } of summed)
    for (const [name, own] of compute) seconds.set(name, (seconds.get(name) ?? 0) + own);
  // The sum in another order may differ in the last digit, so that the quotient may exceed 1.
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

import { type OutsideRow, type RankStep, type Times, worldSeconds, type WorldStep } from "@skein/report";
import { attribute, type Attribution, type KernelClock } from "../trace/attribution.ts";
import { slowest, timesOf } from "./times.ts";

/** Cost of recording one span: the part inside the span of a kernel, and the part outside the span. */
export interface RecordingCost {
  readonly clock: KernelClock;
  readonly inKernelSeconds: number;
  readonly besideSpanSeconds: number;
}

/**
 * Returns the cost of recording a span, which depends on the clock that timed the kernels. The host reads its clock
 * before and after a kernel, and one of the two reads is inside the span. A device measures its own times, so recording
 * by the host does not lengthen kernels.
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

/** Shares of operators and of other activities in the time of a step. */
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
 * Compute the shares of operators, and of time outside operators, in the total time of all ranks over the middle half
 * of the steps. Sums over the same steps and ranks add up to the total; medians of the individual times would not.
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
  // Sums in a different order may differ in the last digit, so the quotient may exceed 1.
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

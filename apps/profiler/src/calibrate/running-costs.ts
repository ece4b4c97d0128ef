import type { RankStep, WorldStep } from "@skein/report";
import { fitLink } from "@skein/collectives";
import { type HardwareFile, isStart, overlapsOf, type RunningCosts, type StepProgram } from "@skein/cost-model";
import { median } from "@skein/measuring";
import type { ProfiledJob } from "skein-train/profiling";
import { simulateStep } from "../predict/simulate-step.ts";
import { attribute } from "../profile/attribution.ts";
import { sum } from "../sum.ts";

/** A job that was run for some steps. */
export interface RanJob {
  readonly job: Pick<ProfiledJob, "facts" | "groups">;
  readonly steps: readonly WorldStep[];
  /** With its prices on the hardware that the costs are fitted for. */
  readonly program: StepProgram;
}

/** What steps have shown, and how the step of each job comes out with it. */
export interface FittedRunningCosts {
  readonly running: RunningCosts;
  /** In the order of the jobs. */
  readonly fits: readonly { readonly measuredSeconds: number; readonly predictedSeconds: number }[];
}

/** From the end of the last rank's step to that of the next one, in the middle of all. */
const steadySeconds = (steps: readonly WorldStep[]): number => {
  const ends = steps.map((ranks) => Math.max(...ranks.map(({ whole }) => whole.endSeconds)));
  return median(ends.slice(1).map((end, i) => end - ends[i]!));
};

/** What a rank's step takes beside kernels and waiting. */
const outsideSeconds = (step: RankStep): number => {
  const { data, host, between } = attribute(step);
  return data + host + between;
};

/** What a rank's step takes beside waiting. */
const ownSeconds = (step: RankStep): number => sum(attribute(step).compute.values()) + outsideSeconds(step);

/** A line through what steps take beside kernels, by how many collectives they start. */
const fitOutside = (runs: readonly RanJob[]): Pick<RunningCosts, "secondsPerStep" | "secondsPerCollective"> => {
  const samples = runs.map(({ steps }) => {
    const ranks = steps.flat();
    const collectives = median(ranks.map(({ spans }) => spans.filter(({ track }) => track === "collectives").length));
    return { bytes: collectives, seconds: Math.max(1e-9, median(ranks.map(outsideSeconds))) };
  });
  if (new Set(samples.map(({ bytes }) => bytes)).size < 2)
    return { secondsPerStep: median(samples.map(({ seconds }) => seconds)), secondsPerCollective: 0 };
  // The line of messages: a start and a part for each, neither below 0.
  const { secondsPerMessage, secondsPerByte } = fitLink(samples);
  return { secondsPerStep: secondsPerMessage, secondsPerCollective: secondsPerByte };
};

/** The median of χ² of so many degrees of freedom, over their number (Wilson and Hilferty 1931). */
const medianOfChiSquared = (freedom: number): number => (1 - 2 / (9 * freedom)) ** 3;

/**
 * How ranks differ within steps; what slows all of them alike is no scatter. By the median of steps, since one pause
 * says nothing of the others.
 */
const stepVariationOf = (runs: readonly RanJob[]): number => {
  const variances = runs.flatMap(({ steps }) =>
    steps.flatMap((ranks) => {
      const own = ranks.map(ownSeconds);
      const mean = sum(own) / own.length;
      return own.length > 1 && mean > 0
        ? [sum(own.map((seconds) => (seconds / mean - 1) ** 2)) / (own.length - 1)]
        : [];
    }),
  );
  if (variances.length === 0) return 0;
  const freedom = Math.max(...runs.map(({ job }) => job.facts.ranks)) - 1;
  return Math.sqrt(median(variances) / medianOfChiSquared(freedom));
};

/** Delays that are tried: none, then each a quarter longer than the one before, from 20 µs to 20 ms. */
const delays = [0, ...Array.from({ length: 32 }, (_, i) => 20e-6 * 1.25 ** i)];

/** The line a + b · x through points, by least squares, with b not below 0. */
const lineThrough = (points: readonly (readonly [x: number, y: number])[]): readonly [a: number, b: number] => {
  const [meanX, meanY] = [0, 1].map((k) => sum(points.map((point) => point[k]!)) / points.length) as [number, number];
  const spread = sum(points.map(([x]) => (x - meanX) ** 2));
  const slope = spread === 0 ? 0 : Math.max(0, sum(points.map(([x, y]) => (x - meanX) * (y - meanY))) / spread);
  return [meanY - slope * meanX, slope];
};

/**
 * What bytes take of ranks that compute: what these compute longer than kernels are priced, over what is sent
 * meanwhile.
 */
const fitBeside = (overlapped: readonly RanJob[]): number => {
  const longer = sum(
    overlapped.map(({ steps, program }) => {
      const computed = median(steps.flat().map((step) => sum(attribute(step).compute.values())));
      return computed - sum(program.map((step) => (step.kind === "kernel" ? step.price.seconds : 0)));
    }),
  );
  return (
    Math.max(0, longer) /
    Math.max(1, sum(overlapped.flatMap(({ program }) => overlapsOf(program).map(({ sentBytes }) => sentBytes))))
  );
};

/**
 * Fit what running ranks cost beside kernels and messages to the steps of some jobs.
 *
 * What lies outside of kernels and waits, and how ranks scatter, is read off the spans, and so is what kernels take
 * longer beside messages, by the bytes of these. What jobs without overlap take longer than they are simulated is a
 * line over their collectives: some of each, the rest of the step. What messages are delayed by ranks that compute
 * shows in no span of its own: it is the delay with which simulated steps of jobs with overlap come closest to those
 * that were measured (least squares of relative differences), or a lesser one that misses them by no more than chance
 * (the one-standard-error rule); without such jobs it is 0.
 *
 * @param runs with kernels priced as they are when nothing travels beside them.
 *
 * Cost: 33 simulations of some steps for each job.
 */
export const fitRunningCosts = (runs: readonly RanJob[], hardware: HardwareFile): FittedRunningCosts => {
  const measured = new Map(runs.map((run) => [run, steadySeconds(run.steps)]));
  const predictedBy = (running: RunningCosts) => {
    const device = { ...hardware.device, running };
    return ({ job, program }: RanJob): number =>
      simulateStep(job, program, { ...hardware, device }, { spans: false }).stepSeconds;
  };
  const byOverlap = Map.groupBy(runs, ({ program }) => overlapsOf(program).length > 0);
  const [overlapped, plain] = [byOverlap.get(true) ?? [], byOverlap.get(false) ?? []];
  const read: RunningCosts = {
    ...fitOutside(runs),
    collectiveLatencySeconds: 0,
    secondsPerByteBeside: fitBeside(overlapped),
    stepVariation: stepVariationOf(runs),
    messageDelaySeconds: 0,
  };
  const predictPlain = predictedBy(read);
  const [rest, collectiveLatencySeconds] =
    plain.length === 0
      ? [0, 0]
      : lineThrough(
          plain.map((run) => [run.program.filter(isStart).length, measured.get(run)! - predictPlain(run)] as const),
        );
  const still = { ...read, collectiveLatencySeconds, secondsPerStep: Math.max(0, read.secondsPerStep + rest) };
  const misses = delays.map((messageDelaySeconds) => {
    const predict = predictedBy({ ...still, messageDelaySeconds });
    return sum(overlapped.map((run) => (predict(run) / measured.get(run)! - 1) ** 2));
  });
  const byChance = Math.min(...misses) * (1 + 1 / Math.max(1, overlapped.length - 1));
  const running = { ...still, messageDelaySeconds: delays[misses.findIndex((miss) => miss <= byChance)]! };
  const predict = predictedBy(running);
  return {
    running,
    fits: runs.map((run) => ({ measuredSeconds: measured.get(run)!, predictedSeconds: predict(run) })),
  };
};

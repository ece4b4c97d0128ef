import type { RankStep, WorldStep } from "@skein/report";
import { fitLink } from "@skein/collectives";
import {
  besideCollectives,
  type CalibratedRun,
  type HardwareFile,
  isStart,
  overlapsOf,
  type RunningCosts,
  type StepProgram,
} from "@skein/cost-model";
import { median } from "@skein/measuring";
import type { ProfiledJob } from "skein-train/profiling";
import { simulateStep } from "../predict/simulate-step.ts";
import { attribute } from "../trace/attribution.ts";
import { sum } from "../sum.ts";

/** A job that was run for some steps. */
export interface RanJob {
  readonly job: Pick<ProfiledJob, "facts" | "groups">;
  /** Steps of each round; a round is a run of its own. */
  readonly rounds: readonly (readonly WorldStep[])[];
  /** With its prices on the hardware that the costs are fitted for. */
  readonly program: StepProgram;
}

/** Running costs fitted to the steps of some jobs, and how well they predict these. */
export interface FittedRunningCosts {
  readonly running: RunningCosts;
  /** In the order of the jobs. */
  readonly fits: readonly Omit<CalibratedRun, "name">[];
}

const stepsOf = ({ rounds }: RanJob): readonly WorldStep[] => rounds.flat();

/** Seconds from the end of the last rank's step to that of the next step, for each two neighbours of a round. */
const stepTimes = (steps: readonly WorldStep[]): readonly number[] => {
  const ends = steps.map((ranks) => Math.max(...ranks.map(({ whole }) => whole.endSeconds)));
  return ends.slice(1).map((end, i) => end - ends[i]!);
};

const steadySeconds = ({ rounds }: RanJob): number => median(rounds.flatMap(stepTimes));

/** Largest less smallest median of the rounds, as a share of their median; undefined for one round. */
const spreadOf = ({ rounds }: RanJob): number | undefined => {
  const medians = rounds.map((steps) => median(stepTimes(steps)));
  return medians.length < 2 ? undefined : (Math.max(...medians) - Math.min(...medians)) / median(medians);
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
  const samples = runs.map((run) => {
    const ranks = stepsOf(run).flat();
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
  const variances = runs.flatMap((run) =>
    stepsOf(run).flatMap((ranks) => {
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

type Beside = Required<Pick<RunningCosts, "secondsPerByteBeside" | "overlapSlowdown">>;

/**
 * Least angle, as its sine squared, between the bytes and the computing of jobs from which the two can be told apart;
 * below it, bytes are taken for the cause.
 */
const leastDetermined = 1e-3;

/**
 * Fit what collectives that travel cost the kernels beside them: what these take longer than they are priced, by bytes
 * that are sent and by seconds that are computed meanwhile. Least squares with both 0 or more.
 */
const fitBeside = (overlapped: readonly RanJob[]): Beside => {
  const samples = overlapped.map((run) => {
    const { program } = run;
    const beside = besideCollectives(program);
    const secondsOf = (isCounted: (place: number) => boolean): number =>
      sum(program.map((step, place) => (step.kind === "kernel" && isCounted(place) ? step.price.seconds : 0)));
    const computed = median(
      stepsOf(run)
        .flat()
        .map((step) => sum(attribute(step).compute.values())),
    );
    return {
      longer: computed - secondsOf(() => true),
      bytes: sum(overlapsOf(program).map(({ sentBytes }) => sentBytes)),
      seconds: secondsOf((place) => beside[place]!),
    };
  });
  const dot = (a: keyof (typeof samples)[number], b: keyof (typeof samples)[number]): number =>
    sum(samples.map((sample) => sample[a] * sample[b]));
  const [bytes2, seconds2, mixed] = [dot("bytes", "bytes"), dot("seconds", "seconds"), dot("bytes", "seconds")];
  const alone: Beside = {
    secondsPerByteBeside: bytes2 === 0 ? 0 : Math.max(0, dot("bytes", "longer")) / bytes2,
    overlapSlowdown: 0,
  };
  const determinant = bytes2 * seconds2 - mixed ** 2;
  if (determinant <= leastDetermined * bytes2 * seconds2) return alone;
  const [perByte, perSecond] = [
    (dot("bytes", "longer") * seconds2 - dot("seconds", "longer") * mixed) / determinant,
    (dot("seconds", "longer") * bytes2 - dot("bytes", "longer") * mixed) / determinant,
  ];
  // Rounding is no slowdown.
  if (perSecond < 1e-9) return alone;
  return perByte < 0
    ? { secondsPerByteBeside: 0, overlapSlowdown: Math.max(0, dot("seconds", "longer")) / seconds2 }
    : { secondsPerByteBeside: perByte, overlapSlowdown: perSecond };
};

/** Slowdowns that are tried on top of what spans of kernels show. */
const addedSlowdowns = [0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8];

/** Errors of steps that differ by less than this share are alike: then the smaller cost is taken. */
const alike = 0.005;

/**
 * Find how long messages wait for ranks that compute, and how much slower these compute than their kernels show, by the
 * steps of jobs with overlap: least squares of relative errors, and of costs that fit alike the smallest.
 */
const fitOverlap = (
  overlapped: readonly RanJob[],
  still: RunningCosts,
  missOf: (running: RunningCosts) => number,
): RunningCosts => {
  if (overlapped.length === 0) return still;
  const tryAll = (added: number, delays: readonly number[]) =>
    delays.map((messageDelaySeconds) => {
      const running = { ...still, overlapSlowdown: (still.overlapSlowdown ?? 0) + added, messageDelaySeconds };
      return { running, miss: missOf(running) };
    });
  const tried = tryAll(0, delays);
  const leastOf = (of: typeof tried): number => Math.min(...of.map(({ miss }) => miss));
  // Only what delays leave unexplained is a slowdown.
  if (leastOf(tried) > alike)
    for (const added of addedSlowdowns)
      tried.push(
        ...tryAll(
          added,
          delays.filter((_, i) => i % 3 === 0),
        ),
      );
  const least = leastOf(tried);
  return tried.find(({ miss }) => miss <= least + alike)!.running;
};

/**
 * Fit what running ranks cost beside kernels and messages to the steps of some jobs.
 *
 * What is outside of kernels and waits, how ranks scatter, and how much longer kernels take beside messages, by the
 * bytes of these and by the time, is read off the spans. What jobs without overlap take longer than their simulation is
 * a line over their number of collectives: a part for each, the rest for the step. How long messages wait for ranks
 * that compute, and what else slows a rank that overlaps, no span shows: it is fitted to the steps of jobs with
 * overlap. Without such jobs it is 0.
 *
 * @param runs with kernels priced as they are when nothing travels beside them.
 *
 * Cost: 33 to 110 simulations of some steps for each job with overlap.
 */
export const fitRunningCosts = (runs: readonly RanJob[], hardware: HardwareFile): FittedRunningCosts => {
  const measured = new Map(runs.map((run) => [run, steadySeconds(run)]));
  const predictedBy = (running: RunningCosts) => {
    const device = { ...hardware.device, running };
    return ({ job, program }: RanJob): number =>
      simulateStep(job, program, { ...hardware, device }, { spans: false }).stepSeconds;
  };
  const overlaps = ({ program }: RanJob): boolean => overlapsOf(program).length > 0;
  const byOverlap = Map.groupBy(runs, overlaps);
  const [overlapped, plain] = [byOverlap.get(true) ?? [], byOverlap.get(false) ?? []];
  const read: RunningCosts = {
    ...fitOutside(runs),
    collectiveLatencySeconds: 0,
    ...fitBeside(overlapped),
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
  /** Root mean square of relative errors. */
  const missOf = (running: RunningCosts): number => {
    const predict = predictedBy(running);
    return Math.sqrt(sum(overlapped.map((run) => (predict(run) / measured.get(run)! - 1) ** 2)) / overlapped.length);
  };
  const running = fitOverlap(overlapped, still, missOf);
  const predict = predictedBy(running);
  return {
    running,
    fits: runs.map((run) => {
      const spread = spreadOf(run);
      return {
        overlaps: overlaps(run),
        measuredSeconds: measured.get(run)!,
        predictedSeconds: predict(run),
        ...(spread !== undefined && { spread }),
      };
    }),
  };
};

import type { RankStep, WorldStep } from "@skein/report";
import { fitLink } from "@skein/collectives";
import { kernelsDuringCollectives, isStart, overlapsOf, type StepProgram } from "@skein/cost-model/pricing";
import type { CalibratedRun, HardwareFile, RunningCosts } from "@skein/cost-model/hardware";
import { median } from "@skein/measuring";
import type { ProfiledJob } from "skein-train/profiling";
import { simulateStep } from "../predict/simulate-step.ts";
import { attribute } from "../trace/attribution.ts";
import { sum } from "../sum.ts";

/** A job with its measured steps. */
export interface RanJob {
  readonly job: Pick<ProfiledJob, "facts" | "groups">;
  /** Measured steps by round. Each round is a separate run of the job. */
  readonly rounds: readonly (readonly WorldStep[])[];
  /**
   * Step of the job, with the predicted time of each operation on the hardware for which the running costs are fitted.
   */
  readonly program: StepProgram;
}

/**
 * Running costs fitted to the measured steps of several jobs, and the measured and predicted step times of these jobs.
 */
export interface FittedRunningCosts {
  readonly running: RunningCosts;
  /** Measured and predicted step of each job, in the order of the jobs. */
  readonly fits: readonly Omit<CalibratedRun, "name">[];
}

const stepsOf = ({ rounds }: RanJob): readonly WorldStep[] => rounds.flat();

/**
 * Returns the step times of one round in seconds, from the end of a step on its last rank to the end of the next step.
 */
const stepTimes = (steps: readonly WorldStep[]): readonly number[] => {
  const ends = steps.map((ranks) => Math.max(...ranks.map(({ whole }) => whole.endSeconds)));
  return ends.slice(1).map((end, i) => end - ends[i]!);
};

const steadySeconds = ({ rounds }: RanJob): number => median(rounds.flatMap(stepTimes));

/**
 * Returns the relative spread of the rounds: largest minus smallest median step time, divided by the median of these
 * medians. Undefined for a single round.
 */
const spreadOf = ({ rounds }: RanJob): number | undefined => {
  const medians = rounds.map((steps) => median(stepTimes(steps)));
  return medians.length < 2 ? undefined : (Math.max(...medians) - Math.min(...medians)) / median(medians);
};

/** Returns the seconds of a rank's step outside kernels and waits. */
const outsideSeconds = (step: RankStep): number => {
  const { data, host, between } = attribute(step);
  return data + host + between;
};

/** Returns the seconds of a rank's step, excluding waits. */
const ownSeconds = (step: RankStep): number => sum(attribute(step).compute.values()) + outsideSeconds(step);

/** Fits a line to the step time outside kernels, as a function of the number of collectives in the step. */
const fitOutside = (runs: readonly RanJob[]): Pick<RunningCosts, "secondsPerStep" | "secondsPerCollective"> => {
  const samples = runs.map((run) => {
    const ranks = stepsOf(run).flat();
    const collectives = median(ranks.map(({ spans }) => spans.filter(({ track }) => track === "collectives").length));
    return { bytes: collectives, seconds: Math.max(1e-9, median(ranks.map(outsideSeconds))) };
  });
  if (new Set(samples.map(({ bytes }) => bytes)).size < 2)
    return { secondsPerStep: median(samples.map(({ seconds }) => seconds)), secondsPerCollective: 0 };
  // The same fit as for links: a constant and a cost per collective, both at least 0.
  const { secondsPerMessage, secondsPerByte } = fitLink(samples);
  return { secondsPerStep: secondsPerMessage, secondsPerCollective: secondsPerByte };
};

/** Returns the median of χ² with `freedom` degrees of freedom, divided by `freedom` (Wilson and Hilferty 1931). */
const medianOfChiSquared = (freedom: number): number => (1 - 2 / (9 * freedom)) ** 3;

/**
 * Computes the relative standard deviation of the times of ranks within a step. Slowdowns that affect all ranks equally
 * do not change the result. Uses the median over steps, so that a single pause does not change the result either.
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

/** Candidate message delays in seconds: 0, and values from 20 µs to 20 ms, each 25 % longer than the previous value. */
const delays = [0, ...Array.from({ length: 32 }, (_, i) => 20e-6 * 1.25 ** i)];

/** Fits a least-squares line a + b · x to points, with b at least 0. */
const lineThrough = (points: readonly (readonly [x: number, y: number])[]): readonly [a: number, b: number] => {
  const [meanX, meanY] = [0, 1].map((k) => sum(points.map((point) => point[k]!)) / points.length) as [number, number];
  const spread = sum(points.map(([x]) => (x - meanX) ** 2));
  const slope = spread === 0 ? 0 : Math.max(0, sum(points.map(([x, y]) => (x - meanX) * (y - meanY))) / spread);
  return [meanY - slope * meanX, slope];
};

type OverlapCosts = Required<Pick<RunningCosts, "secondsPerByteBeside" | "overlapSlowdown">>;

/**
 * Minimum sin² of the angle between two vectors with one component per job: bytes sent, and seconds computed during
 * collectives. Below this value, the vectors are nearly parallel. The fit then cannot separate the effects of both
 * quantities, and attributes the slowdown of kernels to sent bytes only.
 */
const minDetermined = 1e-3;

/**
 * Fits the slowdown of kernels that run during collectives. The slowdown is measured minus predicted kernel seconds,
 * and is fitted as a linear function of the bytes sent and of the seconds computed during collectives. Uses least
 * squares with nonnegative coefficients.
 */
const fitOverlapCosts = (overlapped: readonly RanJob[]): OverlapCosts => {
  const samples = overlapped.map((run) => {
    const { program } = run;
    const isOverlapped = kernelsDuringCollectives(program);
    const secondsOf = (isCounted: (index: number) => boolean): number =>
      sum(program.map((step, index) => (step.kind === "kernel" && isCounted(index) ? step.price.seconds : 0)));
    const computed = median(
      stepsOf(run)
        .flat()
        .map((step) => sum(attribute(step).compute.values())),
    );
    return {
      secondsLonger: computed - secondsOf(() => true),
      bytes: sum(overlapsOf(program).map(({ sentBytes }) => sentBytes)),
      seconds: secondsOf((index) => isOverlapped[index]!),
    };
  });
  const dot = (a: keyof (typeof samples)[number], b: keyof (typeof samples)[number]): number =>
    sum(samples.map((sample) => sample[a] * sample[b]));
  const [bytes2, seconds2, mixed] = [dot("bytes", "bytes"), dot("seconds", "seconds"), dot("bytes", "seconds")];
  const alone: OverlapCosts = {
    secondsPerByteBeside: bytes2 === 0 ? 0 : Math.max(0, dot("bytes", "secondsLonger")) / bytes2,
    overlapSlowdown: 0,
  };
  const determinant = bytes2 * seconds2 - mixed ** 2;
  if (determinant <= minDetermined * bytes2 * seconds2) return alone;
  const [perByte, perSecond] = [
    (dot("bytes", "secondsLonger") * seconds2 - dot("seconds", "secondsLonger") * mixed) / determinant,
    (dot("seconds", "secondsLonger") * bytes2 - dot("bytes", "secondsLonger") * mixed) / determinant,
  ];
  // A value this small is a rounding error, not a slowdown.
  if (perSecond < 1e-9) return alone;
  return perByte < 0
    ? { secondsPerByteBeside: 0, overlapSlowdown: Math.max(0, dot("seconds", "secondsLonger")) / seconds2 }
    : { secondsPerByteBeside: perByte, overlapSlowdown: perSecond };
};

/**
 * Candidates for the additional slowdown during collectives that kernel spans do not show, as a fraction of the seconds
 * computed during collectives.
 */
const addedSlowdowns = [0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8];

/**
 * Maximum difference of relative step errors that are treated as equal. Among equal errors, the smaller cost is chosen.
 */
const equalErrorTolerance = 0.005;

/**
 * Fits two costs to the steps of jobs that overlap messages with computation: the delay of messages to computing ranks,
 * and a slowdown of these ranks that kernel spans do not show. Minimizes the root mean square of the relative step
 * errors. Among costs with equal errors, the smallest costs are chosen.
 */
const fitOverlap = (
  overlapped: readonly RanJob[],
  withoutOverlap: RunningCosts,
  errorOf: (running: RunningCosts) => number,
): RunningCosts => {
  if (overlapped.length === 0) return withoutOverlap;
  const tryAll = (added: number, delays: readonly number[]) =>
    delays.map((messageDelaySeconds) => {
      const running = {
        ...withoutOverlap,
        overlapSlowdown: (withoutOverlap.overlapSlowdown ?? 0) + added,
        messageDelaySeconds,
      };
      return { running, error: errorOf(running) };
    });
  const tried = tryAll(0, delays);
  const minOf = (of: typeof tried): number => Math.min(...of.map(({ error }) => error));
  // Slowdowns are tried only if message delays alone do not explain the error.
  if (minOf(tried) > equalErrorTolerance)
    for (const added of addedSlowdowns)
      tried.push(
        ...tryAll(
          added,
          delays.filter((_, i) => i % 3 === 0),
        ),
      );
  const least = minOf(tried);
  return tried.find(({ error }) => error <= least + equalErrorTolerance)!.running;
};

/**
 * Fits the costs of running ranks to measured steps of jobs. These costs are added to the costs of kernels and
 * messages.
 *
 * Three costs are read from spans: the time outside kernels and waits, the variation of rank times, and the slowdown of
 * kernels during messages (per byte and per second). Two further costs are fitted to the steps of jobs without overlap:
 * the slope and the intercept of measured minus simulated step time, as a linear function of the number of collectives,
 * are a cost per collective and a cost per step. The last two costs are not visible in spans and are fitted to the
 * steps of jobs with overlap: the delay of messages to computing ranks, and an additional slowdown of ranks during
 * collectives. Both costs are 0 if no job has overlap.
 *
 * @param runs Measured jobs. The predicted kernel times in their programs do not include a slowdown by messages.
 *
 * Cost: 33 to 110 simulations of a few steps for each job with overlap.
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
    ...fitOverlapCosts(overlapped),
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
  const withoutOverlap = {
    ...read,
    collectiveLatencySeconds,
    secondsPerStep: Math.max(0, read.secondsPerStep + rest),
  };
  /** Returns the root mean square of the relative step-time errors of jobs with overlap. */
  const errorOf = (running: RunningCosts): number => {
    const predict = predictedBy(running);
    return Math.sqrt(sum(overlapped.map((run) => (predict(run) / measured.get(run)! - 1) ** 2)) / overlapped.length);
  };
  const running = fitOverlap(overlapped, withoutOverlap, errorOf);
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

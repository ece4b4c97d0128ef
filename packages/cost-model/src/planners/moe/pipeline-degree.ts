import { ArgumentError } from "@skein/tensor-core";
import { checkSeconds, chunkSeconds, type MoeLayerPass } from "./layer-pass.ts";
import { type IntraNodeOrder, layerTimeline } from "./layer-timeline.ts";

/** Pipeline chosen for one pass over an expert layer. */
export interface PipelinePlan {
  readonly numChunks: number;
  readonly intraNodeOrder: IntraNodeOrder;
  /** Makespan of the pipeline in seconds, as computed by `layerTimeline`. */
  readonly seconds: number;
}

/** Candidate pipelines to compare: chunk counts, and orders of collectives within a node. */
export interface PipelineChoices {
  /** Candidate chunk counts. Default: 1, 2, 4 and 8, as in the released code. */
  readonly degrees?: readonly number[] | undefined;
  /** Candidate orders of collectives within a node. Default: both orders. */
  readonly intraNodeOrders?: readonly IntraNodeOrder[] | undefined;
}

/**
 * A candidate schedule with its makespan. With a gradient all-reduce of t seconds, the makespan is
 * max(seconds, fixedSeconds + t).
 */
export interface PipelineCandidate extends PipelinePlan {
  /** Seconds of the traffic between nodes, without gradients: 2r · t_a2a. */
  readonly fixedSeconds: number;
}

const bothOrders: readonly IntraNodeOrder[] = ["gathers-first", "alternating"];

/**
 * Simulates all candidate schedules without a gradient all-reduce. The result is ordered by number of chunks, fewest
 * first.
 */
export const pipelineCandidates = (
  pass: MoeLayerPass,
  { degrees = [1, 2, 4, 8], intraNodeOrders = bothOrders }: PipelineChoices = {},
): readonly PipelineCandidate[] => {
  if (degrees.length === 0 || intraNodeOrders.length === 0)
    throw new ArgumentError(
      `a pipeline of experts has ${degrees.length} degrees and ${intraNodeOrders.length} orders to choose from, but needs at least one of each; add choices`,
    );
  return degrees
    .toSorted((a, b) => a - b)
    .flatMap((numChunks) => {
      const chunk = chunkSeconds(pass, numChunks);
      return intraNodeOrders.map((intraNodeOrder) => ({
        numChunks,
        intraNodeOrder,
        seconds: layerTimeline(chunk, { numChunks, intraNodeOrder }).makespanSeconds,
        fixedSeconds: 2 * numChunks * chunk.allToAll,
      }));
    });
};

/**
 * Chooses the candidate schedule that ends first with a gradient all-reduce of `gradientSeconds` seconds. Among
 * candidates that end at the same time, the first candidate in the list is chosen.
 */
export const fastest = (candidates: readonly PipelineCandidate[], gradientSeconds: number): PipelinePlan => {
  const plans = candidates.map(({ numChunks, intraNodeOrder, seconds, fixedSeconds }) => ({
    numChunks,
    intraNodeOrder,
    seconds: Math.max(seconds, fixedSeconds + gradientSeconds),
  }));
  return plans.reduce((best, plan) => (plan.seconds < best.seconds ? plan : best));
};

/**
 * Chooses the number of chunks for one pass over an expert layer, and the order of its collectives within a node: the
 * choice with the smallest makespan of `layerTimeline`. Among equal makespans, fewer chunks are preferred, then the
 * order listed first.
 *
 * Cost: O(degrees · orders · r), one simulation per choice. This takes microseconds, so no solver is needed.
 *
 * @param gradientSeconds Seconds of an all-reduce between the last dispatch and the first combine; 0 in a forward pass.
 * @throws ArgumentError if there is no candidate, or a value is impossible.
 *
 * @example
 * ```ts
 * const leg = { model: { startupSeconds: 0.01, secondsPerByte: 1e-6 }, bytes: 1e6 };
 * const experts = { startupSeconds: 0.01, workSeconds: 4 };
 * const { numChunks } = planPipeline({ allToAll: leg, allGather: leg, reduceScatter: leg, experts });
 * console.log(numChunks > 1); // true
 * ```
 * Source: the problem of FSMoE, ASPLOS 2025, who minimize four formulas by sequential quadratic programming.
 */
export const planPipeline = (pass: MoeLayerPass, gradientSeconds = 0, choices: PipelineChoices = {}): PipelinePlan => {
  checkSeconds("gradients", gradientSeconds);
  return fastest(pipelineCandidates(pass, choices), gradientSeconds);
};

const greatestCommonDivisor = (a: number, b: number): number => (b === 0 ? a : greatestCommonDivisor(b, a % b));

/**
 * Returns the required divisor of an expert's capacity, so that both passes can divide the capacity into chunks: the
 * least common multiple of the two chunk counts.
 */
export const capacityMultiple = (forward: PipelinePlan, backward: PipelinePlan): number =>
  (forward.numChunks / greatestCommonDivisor(forward.numChunks, backward.numChunks)) * backward.numChunks;

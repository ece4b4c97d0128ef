import { ArgumentError } from "@skein/tensor-core";
import { checkSeconds, chunkSeconds, type MoeLayerPass } from "./layer-pass.ts";
import { type IntraNodeOrder, layerTimeline } from "./layer-timeline.ts";

/** How one pass of a layer of experts is pipelined. */
export interface PipelinePlan {
  readonly numChunks: number;
  readonly intraNodeOrder: IntraNodeOrder;
  /** The makespan of `layerTimeline`. */
  readonly seconds: number;
}

/** What is tried. */
export interface PipelineChoices {
  /** Numbers of chunks. Default: 1, 2, 4 and 8, as the released code has them. */
  readonly degrees?: readonly number[] | undefined;
  /** Default: both. */
  readonly intraNodeOrders?: readonly IntraNodeOrder[] | undefined;
}

/** A schedule that may be chosen, with what decides about it: its time is max(seconds, fixedSeconds + gradients). */
export interface PipelineCandidate extends PipelinePlan {
  /** 2r · t_a2a: what else goes between nodes. */
  readonly fixedSeconds: number;
}

const bothOrders: readonly IntraNodeOrder[] = ["gathers-first", "alternating"];

/** Simulate every choice, without gradients; fewer chunks first. */
export const pipelineCandidates = (
  pass: MoeLayerPass,
  { degrees = [1, 2, 4, 8], intraNodeOrders = bothOrders }: PipelineChoices = {},
): readonly PipelineCandidate[] => {
  if (degrees.length === 0 || intraNodeOrders.length === 0)
    throw new ArgumentError(
      `a pipeline of experts has ${degrees.length} degrees and ${intraNodeOrders.length} orders to choose from; give one of each, or more`,
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

/** Choose the candidate that ends first with an all-reduce of gradients of so long; of equal ones the first. */
export const fastest = (candidates: readonly PipelineCandidate[], gradientSeconds: number): PipelinePlan => {
  const plans = candidates.map(({ numChunks, intraNodeOrder, seconds, fixedSeconds }) => ({
    numChunks,
    intraNodeOrder,
    seconds: Math.max(seconds, fixedSeconds + gradientSeconds),
  }));
  return plans.reduce((best, plan) => (plan.seconds < best.seconds ? plan : best));
};

/**
 * Choose into how many chunks one pass of a layer of experts is cut, and in which order its collectives within a node
 * run: the least makespan of `layerTimeline` among all choices. Of equal ones, fewer chunks and the first order.
 *
 * Cost: a simulation for each choice, O(degrees · orders · r) in all: microseconds, so nothing is left to a solver.
 *
 * @param gradientSeconds of an all-reduce between the last dispatch and the first combine; 0 in a forward pass.
 * @throws ArgumentError where nothing may be chosen, or for impossible figures.
 *
 * Source: the problem of FSMoE, ASPLOS 2025, who minimise four formulas by sequential quadratic programming.
 */
export const planPipeline = (pass: MoeLayerPass, gradientSeconds = 0, choices: PipelineChoices = {}): PipelinePlan => {
  checkSeconds("gradients", gradientSeconds);
  return fastest(pipelineCandidates(pass, choices), gradientSeconds);
};

const greatestCommonDivisor = (a: number, b: number): number => (b === 0 ? a : greatestCommonDivisor(b, a % b));

/** Tell what the capacity of an expert must be a multiple of, so that both passes can cut it: the least common one. */
export const capacityMultiple = (forward: PipelinePlan, backward: PipelinePlan): number =>
  (forward.numChunks / greatestCommonDivisor(forward.numChunks, backward.numChunks)) * backward.numChunks;

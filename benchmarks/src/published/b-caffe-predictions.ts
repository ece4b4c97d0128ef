import {
  collectiveSeconds,
  type GradientProfile,
  type LinearCollectiveModel,
  onePerTensor,
  timelineOf,
} from "@skein/cost-model";
import { fitCollectiveModel } from "@skein/cost-model/calibration";
import { planMgWfbp, planMgWfbpOptimal } from "@skein/cost-model/planners";
import type { BucketPlan } from "@skein/tensor-core";
import { tracedLayers } from "@skein/published-measurements";

type LayerTimes = readonly number[];
type Layer = (typeof tracedLayers)[number];

const layerTimes = (microsecondsOf: (layer: Layer) => number): LayerTimes =>
  tracedLayers.map((layer) => 1e-6 * microsecondsOf(layer));

const total = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0);

/** Returns a profile of the traced layers, last layer first, with the given backward times. */
const profileWith = (backward: LayerTimes): GradientProfile => ({
  tensors: tracedLayers
    .map(({ elements }, layer) => ({ path: `layer-${layer}`, bytes: 4 * elements, backwardSeconds: backward[layer]! }))
    .reverse(),
});

/**
 * Times of a replayed log in seconds: total backward time, total all-reduce time, end of the last all-reduce, and
 * exposed communication.
 */
export interface ReplayedLog {
  readonly backwardSeconds: number;
  readonly allReduceSeconds: number;
  readonly finishSeconds: number;
  readonly exposedSeconds: number;
}

/**
 * Replays a log with measured or predicted times. Each layer's all-reduce starts after the layer's backward
 * computation, and all-reduces run one at a time.
 */
const replay = (backward: LayerTimes, allReduce: LayerTimes): ReplayedLog => {
  // The all-reduce seconds of each layer are stored as bytes, and the model takes one second per byte, so that the
  // timeline uses exactly these times.
  const profile = {
    tensors: profileWith(backward).tensors.map((tensor, i) => ({
      ...tensor,
      bytes: allReduce[tracedLayers.length - 1 - i]!,
    })),
  };
  const { backwardEndSeconds, communicationEndSeconds, exposedSeconds } = timelineOf(profile, onePerTensor(profile), {
    startupSeconds: 0,
    secondsPerByte: 1,
  });
  return {
    backwardSeconds: backwardEndSeconds,
    allReduceSeconds: total(allReduce),
    finishSeconds: communicationEndSeconds,
    exposedSeconds,
  };
};

export type LogName = "tmpcomm" | "tmp2comm" | "tmp8comm";

/** Backward and all-reduce times of each log, by layer. */
const logs: Readonly<Record<LogName, readonly [backward: LayerTimes, allReduce: LayerTimes]>> = {
  tmpcomm: [layerTimes(({ backwardOf }) => backwardOf.unnamed), layerTimes(({ allReduce }) => allReduce.unnamed)],
  tmp2comm: [layerTimes(({ backwardOf }) => backwardOf[2]), layerTimes(({ allReduce }) => allReduce[2])],
  tmp8comm: [layerTimes(({ backwardOf }) => backwardOf[8]), layerTimes(({ allReduce }) => allReduce[8])],
};

export const logNames: readonly LogName[] = ["tmpcomm", "tmp2comm", "tmp8comm"];

export const replayLog = (name: LogName): ReplayedLog => replay(...logs[name]);

/**
 * Fits the time of an all-reduce during training as a + b · M for M bytes, over all layers. A robust fit first
 * determines the ratio of startup and transfer time. Then both coefficients are scaled so that the layers add up to the
 * measured total. The total includes stragglers, which affect different layers in each iteration.
 */
const trainingModel = (runs: readonly LayerTimes[]): LinearCollectiveModel => {
  const samples = runs.flatMap((times) =>
    times.map((seconds, layer) => ({ bytes: 4 * tracedLayers[layer]!.elements, seconds })),
  );
  const { startupSeconds, secondsPerByte } = fitCollectiveModel(samples);
  const line = { startupSeconds, secondsPerByte };
  const scale =
    total(samples.map(({ seconds }) => seconds)) / total(samples.map(({ bytes }) => collectiveSeconds(line, bytes)));
  return { startupSeconds: scale * startupSeconds, secondsPerByte: scale * secondsPerByte };
};

const between = (from: number, to: number, at: number): number => from + at * (to - from);

/**
 * Weights that interpolate costs of 4 nodes between 2 nodes (0) and 8 nodes (1). A startup cost is proportional to log₂
 * P, and a cost per byte to (P − 1) / P.
 */
const byShareOfBytes = (3 / 4 - 1 / 2) / (7 / 8 - 1 / 2);
const bySteps = 1 / 2;

/**
 * Returns the cost models of all-reduces during training. The models for 2 and 8 nodes are fitted to logs, and the
 * model for 4 nodes is interpolated. One log does not state its number of nodes; its times show that it was recorded on
 * 2 nodes.
 */
export const trainingModels = (): { readonly [nodes in 2 | 4 | 8]: LinearCollectiveModel } => {
  const on2 = trainingModel([logs.tmpcomm[1], logs.tmp2comm[1]]);
  const on8 = trainingModel([logs.tmp8comm[1], layerTimes(({ again }) => again)]);
  const on4 = {
    startupSeconds: between(on2.startupSeconds, on8.startupSeconds, bySteps),
    secondsPerByte: between(on2.secondsPerByte, on8.secondsPerByte, byShareOfBytes),
  };
  return { 2: on2, 4: on4, 8: on8 };
};

/** Bucket plan whose collectives run one after the other. */
export interface PredictedMerge {
  readonly numBuckets: number;
  readonly allReduceSeconds: number;
  readonly finishSeconds: number;
}

export interface PredictedLog extends ReplayedLog {
  readonly greedy: PredictedMerge;
  readonly optimal: PredictedMerge;
}

/**
 * Predicts a log for the model's number of nodes. Backward times are means over the available logs, and all-reduce
 * times come from the model.
 */
export const predictLog = (model: LinearCollectiveModel): PredictedLog => {
  const names = logNames;
  const backward = tracedLayers.map((_, layer) => total(names.map((name) => logs[name][0][layer]!)) / names.length);
  const profile = profileWith(backward);
  const merged = (plan: BucketPlan): PredictedMerge => {
    const { collectives, communicationEndSeconds } = timelineOf(profile, plan, model);
    return {
      numBuckets: plan.length,
      allReduceSeconds: total(collectives.map(({ startSeconds, endSeconds }) => endSeconds - startSeconds)),
      finishSeconds: communicationEndSeconds,
    };
  };
  return {
    ...replay(
      backward,
      tracedLayers.map(({ elements }) => collectiveSeconds(model, 4 * elements)),
    ),
    greedy: merged(planMgWfbp(profile, model)),
    optimal: merged(planMgWfbpOptimal(profile, model)),
  };
};

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

/** A profile of the traced layers, last layer first, with backward times of one run or of several. */
const profileWith = (backward: LayerTimes): GradientProfile => ({
  tensors: tracedLayers
    .map(({ elements }, layer) => ({ path: `layer-${layer}`, bytes: 4 * elements, backwardSeconds: backward[layer]! }))
    .reverse(),
});

/** Totals of a log, in seconds. */
export interface ReplayedLog {
  readonly backwardSeconds: number;
  readonly allReduceSeconds: number;
  readonly finishSeconds: number;
  readonly exposedSeconds: number;
}

/**
 * Replays a log: each layer's all-reduce follows its backward, one all-reduce at a time, with measured or predicted
 * times.
 */
const replay = (backward: LayerTimes, allReduce: LayerTimes): ReplayedLog => {
  // Each layer's own time as its bytes, at one second per byte: the timeline needs nothing else.
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

/** Times of each log by layer: backward and all-reduce. */
const logs: Readonly<Record<LogName, readonly [backward: LayerTimes, allReduce: LayerTimes]>> = {
  tmpcomm: [layerTimes(({ backwardOf }) => backwardOf.unnamed), layerTimes(({ allReduce }) => allReduce.unnamed)],
  tmp2comm: [layerTimes(({ backwardOf }) => backwardOf[2]), layerTimes(({ allReduce }) => allReduce[2])],
  tmp8comm: [layerTimes(({ backwardOf }) => backwardOf[8]), layerTimes(({ allReduce }) => allReduce[8])],
};

export const logNames: readonly LogName[] = ["tmpcomm", "tmp2comm", "tmp8comm"];

export const replayLog = (name: LogName): ReplayedLog => replay(...logs[name]);

/**
 * Fits a + b · M to a layer's all-reduce within training. The robust line separates start-up from transfer. Both are
 * then scaled so that the layers add up to the measured sum, which includes stragglers: a sum of single measurements
 * always includes some stragglers, at changing layers.
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

/** Position of 4 nodes between 2 and 8: by log₂ P for costs per step, by (P − 1) / P for costs per byte of a rank. */
const byShareOfBytes = (3 / 4 - 1 / 2) / (7 / 8 - 1 / 2);
const bySteps = 1 / 2;

/**
 * Time models of layers within training, on 2 and 8 nodes from their logs, on 4 nodes by interpolation. The log without
 * a name is of 2 nodes, as its times show.
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

/** A plan, with its collectives run one after the other. */
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
 * Predicts a log for the model's number of nodes: backward as the mean of the available logs, all-reduces by the model.
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

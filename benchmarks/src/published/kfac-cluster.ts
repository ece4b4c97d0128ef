import {
  allInOne,
  collectiveSeconds,
  type GradientProfile,
  type LinearCollectiveModel,
  mebibytes,
  onePerTensor,
  timelineOf,
} from "@skein/cost-model";
import { factorProfile, planFactorBuckets } from "@skein/cost-model/planners";
import type { KfacStages, PublishedForm } from "@skein/published-measurements";
import {
  computedFactors,
  type FormPlacement,
  formStages,
  placeBalanced,
  placeForm,
  type PlannedLayer,
  type StageOptions,
} from "@skein/second-order";
import type { BucketPlan } from "@skein/tensor-core";
import { type ConvolutionLayer, convolutionLayers, inputRows, type NetworkName } from "./convolution-layers.ts";

/** All fitted parameters of the K-FAC stage-time model. */
export interface KfacCluster {
  /**
   * Seconds per row of the factor's inputs (`a` or `g`) on one GPU, in addition to the time of the row's multiply-adds
   * at peak rate.
   */
  readonly secondsPerFactorRow: number;
  /** Startup seconds of one factor: time to extract patches and to launch kernels. */
  readonly factorStartSeconds: number;
  readonly allReduceStartSeconds: number;
  readonly broadcastStartSeconds: number;
  /**
   * Seconds per byte of the slowest link of a ring, in one direction. A broadcast uses the link once; an all-reduce
   * over P ranks uses the link 2 (P − 1) / P times.
   */
  readonly linkSecondsPerByte: number;
  /** Seconds to pack the triangle of one symmetric factor into a message, and to unpack it. */
  readonly packSeconds: number;
  /**
   * Fixed seconds of an inversion. Inverting a factor with n rows takes `inverseStartSeconds + inverseSecondsPerCube ·
   * n³`.
   */
  readonly inverseStartSeconds: number;
  readonly inverseSecondsPerCube: number;
}

/** Training run of a neural network on the cluster, as input of the prediction. */
export interface KfacRun {
  readonly network: NetworkName;
  readonly batchPerGpu: number;
  /** Seconds of forward and backward pass on one GPU; an input of the prediction. */
  readonly passesSeconds: number;
}

const numGpus = 64;
/** Peak f32 multiply-adds per second of one GPU. Source: data sheet of the RTX 2080 Ti, 13.45 Tflop/s of f32. */
export const peakMultiplyAddsPerSecond = 6.725e12;

/**
 * Returns the seconds of one factor `aᵀa`, where `a` has `rows` rows of `size` numbers: factorStartSeconds + rows ·
 * (secondsPerFactorRow + size² / peak). For small factors the terms without `size` dominate, because every row is read
 * and few output tiles leave most of a GPU idle.
 */
export const factorSeconds = (
  { factorStartSeconds, secondsPerFactorRow }: KfacCluster,
  rows: number,
  size: number,
): number => factorStartSeconds + rows * (secondsPerFactorRow + size ** 2 / peakMultiplyAddsPerSecond);
const bytesPerElement = 4;
/**
 * Share of the forward pass in the compute time of both passes: the forward pass has one matrix product per weight, and
 * the backward pass has two.
 */
const forwardShare = 1 / 3;
/**
 * Maximum size of a message of merged factors in bytes, for the pipelining method without a cost model. Source: the
 * default of Horovod.
 */
const thresholdBytes = mebibytes(64);

const allReduceModel = ({ allReduceStartSeconds, linkSecondsPerByte }: KfacCluster): LinearCollectiveModel => ({
  startupSeconds: allReduceStartSeconds,
  secondsPerByte: ((2 * (numGpus - 1)) / numGpus) * linkSecondsPerByte,
});

const broadcastModel = ({ broadcastStartSeconds, linkSecondsPerByte }: KfacCluster): LinearCollectiveModel => ({
  startupSeconds: broadcastStartSeconds,
  secondsPerByte: linkSecondsPerByte,
});

/** Returns the multiply-adds of a forward pass per sample. */
export const forwardMultiplyAdds = (layers: readonly ConvolutionLayer[]): number =>
  layers.reduce((sum, layer) => sum + inputRows(layer) * layer.outputs * layer.positions, 0);

/**
 * Returns options of the stage model for a run: times of layers and messages. Factors are exchanged during the forward
 * pass only, because in these networks the exchange of gradients occupies the links from the start of the backward pass
 * until after its end.
 */
export const stageOptionsOf = (
  cluster: KfacCluster,
  { network, batchPerGpu, passesSeconds }: KfacRun,
): StageOptions & Required<Pick<StageOptions, "hiddenBehind">> => {
  const shapes = convolutionLayers[network];
  const byPath = new Map(shapes.map((layer) => [layer.path, layer]));
  const multiplyAdds = forwardMultiplyAdds(shapes);
  const messageSeconds = (model: LinearCollectiveModel, elements: number): number =>
    collectiveSeconds(model, bytesPerElement * elements);
  return {
    layers: shapes.map(
      (layer): PlannedLayer => ({
        path: layer.path,
        kind: layer.hasBias ? "linear" : "convolution",
        numInputs: inputRows(layer),
        numOutputs: layer.outputs,
      }),
    ),
    numRanks: numGpus,
    hiddenBehind: ["input"],
    messages: "per-factor",
    times: {
      factorSeconds: ({ path, numInputs, numOutputs }, side) =>
        factorSeconds(cluster, batchPerGpu * byPath.get(path)!.positions, side === "input" ? numInputs : numOutputs),
      passSeconds: ({ path, numInputs, numOutputs }, side) =>
        ((side === "input" ? forwardShare : 1 - forwardShare) *
          passesSeconds *
          numInputs *
          numOutputs *
          byPath.get(path)!.positions) /
        multiplyAdds,
      inverseSeconds: (size) => cluster.inverseStartSeconds + cluster.inverseSecondsPerCube * size ** 3,
      // The published tables have no preconditioning stage.
      preconditionSeconds: () => 0,
      allReduceSeconds: (elements) => messageSeconds(allReduceModel(cluster), elements),
      reduceSeconds: (elements) => messageSeconds(broadcastModel(cluster), elements),
      broadcastSeconds: (elements) => messageSeconds(broadcastModel(cluster), elements),
    },
  };
};

const mergedUpTo = ({ tensors }: GradientProfile, bytes: number): BucketPlan => {
  const plan: string[][] = [];
  let room = 0;
  for (const tensor of tensors) {
    if (room <= 0) {
      plan.push([]);
      room = bytes;
    }
    plan.at(-1)!.push(tensor.path);
    room -= tensor.bytes;
  }
  return plan;
};

export const pipelinings = ["naive", "layerWise", "threshold", "optimal"] as const;
export type Pipelining = (typeof pipelinings)[number];

/**
 * Returns the bucket plan of each pipelining method. A pipelining method overlaps the exchange of factors with
 * computation.
 */
const bucketPlans = (cluster: KfacCluster, options: StageOptions): Readonly<Record<Pipelining, BucketPlan>> => {
  const factors = computedFactors(options);
  const profile = factorProfile(factors);
  return {
    naive: allInOne(profile),
    layerWise: onePerTensor(profile),
    threshold: mergedUpTo(profile, thresholdBytes),
    optimal: planFactorBuckets(factors, allReduceModel(cluster)).buckets,
  };
};

const mapPipelinings = (of: (pipelining: Pipelining) => number): Readonly<Record<Pipelining, number>> =>
  Object.fromEntries(pipelinings.map((name) => [name, of(name)])) as Record<Pipelining, number>;

/**
 * Returns the exposed seconds of the factor exchange, including packing, after all factors are computed; by pipelining
 * method.
 *
 * @param hiddenBehind See `StageOptions`. Default: as in `stageOptionsOf`.
 */
export const predictFactorCommunication = (
  cluster: KfacCluster,
  run: KfacRun,
  hiddenBehind?: StageOptions["hiddenBehind"],
): Readonly<Record<Pipelining, number>> => {
  const given = stageOptionsOf(cluster, run);
  const options = { ...given, hiddenBehind: hiddenBehind ?? given.hiddenBehind };
  const profile = factorProfile(computedFactors(options));
  const plans = bucketPlans(cluster, options);
  const packing = cluster.packSeconds * profile.tensors.length;
  return mapPipelinings((name) => packing + timelineOf(profile, plans[name], allReduceModel(cluster)).exposedSeconds);
};

const pipeliningOf = { d: "naive", mpd: "naive", spd: "optimal" } as const;

/**
 * Returns the balanced placement, in which each factor is inverted either by every rank, or by one rank that sends the
 * inverse.
 *
 * @param largestKept Number of rows of the largest factor that every rank inverts. Undefined: the published rule, which
 * chooses the faster alternative for each factor.
 */
const balanced = ({ layers, numRanks, times }: StageOptions, largestKept: number | undefined): FormPlacement => ({
  placement: placeBalanced(layers, numRanks, {
    inverseSeconds: times.inverseSeconds,
    broadcastSeconds: (size) => {
      if (largestKept === undefined) return times.broadcastSeconds((size * (size + 1)) / 2, numRanks);
      return size > largestKept ? 0 : 2 * times.inverseSeconds(size);
    },
  }),
  factors: "mean",
});

/** Seconds of the stages that K-FAC adds to a step. */
export type SecondOrderStages = Omit<KfacStages, "passes" | "gradientCommunication">;

/**
 * Predicts the seconds of the stages that K-FAC adds to a step, for one K-FAC variant.
 *
 * @param largestKept Only for `spd`: number of rows of the largest factor that every GPU inverts itself. Default: by
 * the published rule.
 */
export const predictForm = (
  cluster: KfacCluster,
  run: KfacRun,
  form: PublishedForm,
  largestKept?: number,
): SecondOrderStages => {
  const options = stageOptionsOf(cluster, run);
  const placed = form === "spd" ? balanced(options, largestKept) : placeForm({ kind: form }, options);
  const stages = formStages(placed, { ...options, buckets: bucketPlans(cluster, options)[pipeliningOf[form]] });
  return {
    factorCompute: stages.factorSeconds,
    factorCommunication: stages.factorCommunicationSeconds + 2 * options.layers.length * cluster.packSeconds,
    inverseCompute: stages.inverseSeconds,
    inverseCommunication: stages.inverseCommunicationSeconds,
  };
};

/** Returns the number of rows of the largest factor that every GPU inverts itself, by the published rule. */
export const largestKeptByRule = (cluster: KfacCluster, run: KfacRun): number => {
  const options = stageOptionsOf(cluster, run);
  const { placement } = balanced(options, undefined);
  return options.layers
    .flatMap(({ path, numInputs, numOutputs }) => {
      const { input, gradient } = placement.layers[path]!;
      return [...(input === "everywhere" ? [numInputs] : []), ...(gradient === "everywhere" ? [numOutputs] : [])];
    })
    .reduce((most, size) => Math.max(most, size), 0);
};

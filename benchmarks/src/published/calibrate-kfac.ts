import { fitLeastSquares } from "@skein/cost-model/calibration";
import { spdKfacStages } from "@skein/published-measurements";
import { convolutionLayers, inputRows } from "./convolution-layers.ts";
import {
  type KfacCluster,
  type KfacRun,
  pipelinings,
  type Pipelining,
  predictFactorCommunication,
  predictForm,
} from "./kfac-cluster.ts";

export type PublishedNetwork = keyof typeof spdKfacStages;

/** Networks whose published times the calibration uses. */
export const calibratedOn: readonly PublishedNetwork[] = ["ResNet-50", "ResNet-152"];

export const publishedRun = (network: PublishedNetwork): KfacRun => {
  const { batchPerGpu, forms } = spdKfacStages[network];
  return { network, batchPerGpu, passesSeconds: forms.d.passes };
};

/**
 * Returns the published exposed seconds of the factor exchange by pipelining method: the published total minus the time
 * to compute factors.
 */
export const publishedFactorCommunication = (network: PublishedNetwork): Readonly<Record<Pipelining, number>> => {
  const { pipelining, forms } = spdKfacStages[network];
  const computing = forms.spd.factorCompute;
  return {
    naive: pipelining.naive - computing,
    layerWise: pipelining.layerWise - computing,
    threshold: pipelining.threshold - computing,
    optimal: pipelining.optimal - computing,
  };
};

/** Positive parameter of a cluster. The calibration fits the logarithm of the parameter. */
export interface KfacParameter {
  readonly name: string;
  readonly unit: string;
  readonly read: (cluster: KfacCluster) => number;
  readonly write: (cluster: KfacCluster, value: number) => KfacCluster;
}

interface KfacStage {
  readonly title: string;
  readonly parameters: readonly KfacParameter[];
  /** Returns the relative errors: predicted / published − 1. */
  readonly errors: (cluster: KfacCluster, network: PublishedNetwork) => readonly number[];
}

const parameter = (key: keyof KfacCluster, name: string, unit: string): KfacParameter => ({
  name,
  unit,
  read: (cluster) => cluster[key],
  write: (cluster, value) => ({ ...cluster, [key]: value }),
});

/** Stages in fitting order. Computing factors is fitted first, because the exchange of factors overlaps it. */
const kfacStages: readonly KfacStage[] = [
  {
    title: "computing factors",
    parameters: [
      parameter("factorStartSeconds", "start of a factor", "s"),
      parameter("secondsPerFactorRow", "row of a factor, of any size", "s"),
    ],
    errors: (cluster, network) => [
      predictForm(cluster, publishedRun(network), "d").factorCompute / spdKfacStages[network].forms.d.factorCompute - 1,
    ],
  },
  {
    title: "messages, packing and inverses",
    parameters: [
      parameter("allReduceStartSeconds", "start-up of an all-reduce", "s"),
      parameter("broadcastStartSeconds", "start-up of a broadcast", "s"),
      parameter("linkSecondsPerByte", "slowest link, one way", "s/B"),
      parameter("packSeconds", "packing of a factor", "s"),
      parameter("inverseStartSeconds", "start of an inverse", "s"),
      parameter("inverseSecondsPerCube", "inverse, per row cubed", "s"),
    ],
    errors: (cluster, network) => {
      const { forms } = spdKfacStages[network];
      const run = publishedRun(network);
      const [predicted, published] = [predictFactorCommunication(cluster, run), publishedFactorCommunication(network)];
      return [
        ...pipelinings.map((name) => predicted[name] / published[name] - 1),
        ...(["d", "mpd", "spd"] as const).flatMap((form) => {
          const stages = predictForm(cluster, run, form);
          return (["inverseCompute", "inverseCommunication"] as const)
            .filter((stage) => forms[form][stage] > 0)
            .map((stage) => stages[stage] / forms[form][stage] - 1);
        }),
      ];
    },
  },
];

/** Start values of fits: orders of magnitude for a GPU with 10 Tflop/s and a 20 Gbit/s link. */
const nominalCluster: KfacCluster = {
  secondsPerFactorRow: 2e-8,
  factorStartSeconds: 1e-4,
  allReduceStartSeconds: 1e-3,
  broadcastStartSeconds: 1e-3,
  linkSecondsPerByte: 2e-10,
  packSeconds: 4e-4,
  inverseStartSeconds: 5e-4,
  inverseSecondsPerCube: 5e-13,
};

export interface FoundKfacParameter {
  readonly parameter: KfacParameter;
  readonly value: number;
  /** Standard error divided by the value; NaN if there are as many published times as parameters. */
  readonly relativeError: number;
}

export interface KfacCalibration {
  readonly cluster: KfacCluster;
  readonly found: readonly FoundKfacParameter[];
  /** Standard deviation of relative errors by stage; NaN if there are as many published times as parameters. */
  readonly scatter: readonly { readonly title: string; readonly figures: number; readonly residual: number }[];
}

/** Fits the cluster to published networks, stage by stage, by least squares of relative errors. */
export const calibrateKfac = (networks: readonly PublishedNetwork[] = calibratedOn): KfacCalibration => {
  let cluster = nominalCluster;
  const found: FoundKfacParameter[] = [];
  const scatter = kfacStages.map(({ title, parameters, errors }) => {
    const before = cluster;
    const withValues = (logs: readonly number[]): KfacCluster =>
      parameters.reduce((next, { write }, k) => write(next, Math.exp(logs[k]!)), before);
    const residuals = (logs: readonly number[]): readonly number[] =>
      networks.flatMap((network) => errors(withValues(logs), network));
    const start = parameters.map(({ read }) => Math.log(read(before)));
    // Plans and placements change in jumps, so a finite difference over a larger step gives a more accurate slope.
    const fit = fitLeastSquares(residuals, start, { relativeStep: 1e-4, tolerance: 1e-6, maxIterations: 60 });
    cluster = withValues(fit.parameters);
    for (const [k, parameter] of parameters.entries())
      found.push({ parameter, value: parameter.read(cluster), relativeError: fit.standardErrors[k]! });
    return { title, figures: residuals(start).length, residual: fit.residual };
  });
  return { cluster, found, scatter };
};

/**
 * Returns the bound that fits a published network best: the size of the largest factor that every GPU inverts itself,
 * instead of receiving the inverse. The fit minimizes squared errors of the seconds for computing and exchanging
 * inverses with the balanced placement. Predictions with this bound are no test of the model, because the bound is
 * fitted to the same network.
 */
export const largestKeptAsPublished = (cluster: KfacCluster, network: PublishedNetwork): number => {
  const published = spdKfacStages[network].forms.spd;
  const sizes = [...new Set(convolutionLayers[network].flatMap((layer) => [inputRows(layer), layer.outputs]))].toSorted(
    (a, b) => a - b,
  );
  const errorOf = (largestKept: number): number => {
    const { inverseCompute, inverseCommunication } = predictForm(cluster, publishedRun(network), "spd", largestKept);
    return Math.hypot(inverseCompute - published.inverseCompute, inverseCommunication - published.inverseCommunication);
  };
  const errors = sizes.map(errorOf);
  return sizes[errors.indexOf(Math.min(...errors))]!;
};

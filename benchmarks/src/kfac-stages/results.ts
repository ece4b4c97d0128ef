import { type PublishedForm, spdKfacStages } from "@skein/published-measurements";
import {
  calibratedOn,
  calibrateKfac,
  type KfacCalibration,
  largestKeptAsPublished,
  publishedFactorCommunication,
  type PublishedNetwork,
  publishedRun,
} from "../published/calibrate-kfac.ts";
import { guessPlainStep, type PlainStep } from "../published/guess-plain-step.ts";
import {
  type KfacRun,
  largestKeptByRule,
  type Pipelining,
  predictFactorCommunication,
  predictForm,
  type SecondOrderStages,
} from "../published/kfac-cluster.ts";

export const forms: readonly PublishedForm[] = ["d", "mpd", "spd"];

export const formTitles: Readonly<Record<PublishedForm, string>> = { d: "D-KFAC", mpd: "MPD-KFAC", spd: "SPD-KFAC" };

export const stageTitles: Readonly<Record<keyof SecondOrderStages, string>> = {
  factorCompute: "computing factors",
  factorCommunication: "exchange of factors",
  inverseCompute: "inverses",
  inverseCommunication: "exchange of inverses",
};

/** Predicted and published seconds of one stage of a K-FAC variant, or of one variant in an ablation study. */
export interface Figure {
  readonly network: PublishedNetwork;
  readonly title: string;
  readonly predicted: number;
  readonly published: number;
}

export const ratioOf = ({ predicted, published }: Figure): number => predicted / published;

/** Maximum allowed error of a prediction, relative to the published value: 20 %. */
export const tolerance = 0.2;
export const isMet = (figure: Figure): boolean => Math.abs(ratioOf(figure) - 1) <= tolerance;

/** Predictions for a network for which no times were published. */
export interface Prediction {
  readonly run: KfacRun;
  readonly plain: PlainStep;
  readonly forms: Readonly<Record<PublishedForm, SecondOrderStages>>;
  readonly factorCommunication: Readonly<Record<Pipelining, number>>;
  /**
   * Bound of the published placement rule: number of rows of the largest factor that every GPU inverts itself, instead
   * of receiving the inverse.
   */
  readonly largestKept: number;
  /** Predicted stage times of SPD-KFAC if `LookedBack.largestKept` replaces the bound `largestKept`. */
  readonly spdLookedBack: SecondOrderStages;
  /**
   * Seconds of SPD-KFAC's factor exchange if the forward and backward passes took half, or twice, the estimated time.
   */
  readonly exchangeByPasses: readonly [half: number, twice: number];
}

/**
 * Results for the network that the calibration does not use, with a bound that was fitted afterwards to this network's
 * published times.
 */
export interface LookedBack {
  /**
   * Fitted bound: number of rows of the largest factor that every GPU inverts itself. This bound reproduces the
   * network's published times best.
   */
  readonly largestKept: number;
  readonly spd: SecondOrderStages;
}

/** All results that the page shows. */
export interface KfacStagesResults {
  readonly calibration: KfacCalibration;
  /** Comparisons for each stage with a published time above 0, by network, K-FAC variant and stage. */
  readonly stages: readonly Figure[];
  /** Comparisons for variants of computing and exchanging factors. */
  readonly pipelining: readonly Figure[];
  /** Comparisons for variants of inverting factors and exchanging inverses. */
  readonly placement: readonly Figure[];
  /** Comparisons for steps without K-FAC on the published networks. These predictions are only rough estimates. */
  readonly plain: readonly Figure[];
  readonly lookedBack: LookedBack;
  /**
   * Comparisons for SPD-KFAC's factor exchange, predicted as if the exchange overlapped with both passes. Other
   * predictions overlap the exchange with the forward pass only.
   */
  readonly hiddenBehindBoth: readonly Figure[];
  readonly unpublished: Prediction;
}

export const networks = Object.keys(spdKfacStages) as readonly PublishedNetwork[];

export const heldOut: readonly PublishedNetwork[] = networks.filter((network) => !calibratedOn.includes(network));

const stagesOf = ({ cluster }: KfacCalibration, network: PublishedNetwork): readonly Figure[] =>
  forms.flatMap((form) => {
    const predicted = predictForm(cluster, publishedRun(network), form);
    const published = spdKfacStages[network].forms[form];
    return (Object.keys(stageTitles) as (keyof SecondOrderStages)[])
      .filter((stage) => published[stage] > 0)
      .map((stage) => ({
        network,
        title: `${stageTitles[stage]}, ${form.toUpperCase()}`,
        predicted: predicted[stage],
        published: published[stage],
      }));
  });

export const pipeliningTitles: Readonly<Record<Pipelining, string>> = {
  naive: "after all is computed",
  layerWise: "each factor by itself, early",
  threshold: "early, merged up to 64 MiB",
  optimal: "early, merged by plan",
};

const pipeliningsOf = ({ cluster }: KfacCalibration, network: PublishedNetwork): readonly Figure[] => {
  const run = publishedRun(network);
  const [predicted, published] = [predictFactorCommunication(cluster, run), publishedFactorCommunication(network)];
  const computing = predictForm(cluster, run, "d").factorCompute;
  return (Object.keys(pipeliningTitles) as Pipelining[]).map((name) => ({
    network,
    title: pipeliningTitles[name],
    predicted: computing + predicted[name],
    published: spdKfacStages[network].forms.spd.factorCompute + published[name],
  }));
};

const placementTitles = [
  ["everywhere", "d", "all everywhere"],
  ["inTurn", "mpd", "layers in turn"],
  ["balanced", "spd", "balanced"],
] as const;

const placementsOf = ({ cluster }: KfacCalibration, network: PublishedNetwork): readonly Figure[] =>
  placementTitles.map(([place, form, title]) => {
    const { inverseCompute, inverseCommunication } = predictForm(cluster, publishedRun(network), form);
    return {
      network,
      title,
      predicted: inverseCompute + inverseCommunication,
      published: spdKfacStages[network].placement[place].withExchange,
    };
  });

const plainStepOf = (network: PublishedNetwork): readonly Figure[] => {
  const guess = guessPlainStep(network, spdKfacStages[network].batchPerGpu);
  const { d } = spdKfacStages[network].forms;
  return [
    { network, title: "both passes", predicted: guess.passes, published: d.passes },
    {
      network,
      title: "exchange of gradients",
      predicted: guess.gradientCommunication,
      published: d.gradientCommunication,
    },
  ];
};

const predictUnpublished = ({ cluster }: KfacCalibration, { largestKept }: LookedBack): Prediction => {
  const plain = guessPlainStep("Inception-v4", 16);
  const run: KfacRun = { network: "Inception-v4", batchPerGpu: 16, passesSeconds: plain.passes };
  const exchangeWith = (passesSeconds: number): number =>
    predictFactorCommunication(cluster, { ...run, passesSeconds }).optimal;
  return {
    run,
    plain,
    forms: {
      d: predictForm(cluster, run, "d"),
      mpd: predictForm(cluster, run, "mpd"),
      spd: predictForm(cluster, run, "spd"),
    },
    factorCommunication: predictFactorCommunication(cluster, run),
    largestKept: largestKeptByRule(cluster, run),
    spdLookedBack: predictForm(cluster, run, "spd", largestKept),
    exchangeByPasses: [exchangeWith(plain.passes / 2), exchangeWith(2 * plain.passes)],
  };
};

const lookBack = ({ cluster }: KfacCalibration, network: PublishedNetwork): LookedBack => {
  const largestKept = largestKeptAsPublished(cluster, network);
  return { largestKept, spd: predictForm(cluster, publishedRun(network), "spd", largestKept) };
};

/** Calibrates on two networks and predicts all networks. Takes a few seconds on one core. */
export const findKfacStages = (): KfacStagesResults => {
  const calibration = calibrateKfac();
  const lookedBack = lookBack(calibration, heldOut[0]!);
  return {
    calibration,
    stages: networks.flatMap((network) => stagesOf(calibration, network)),
    pipelining: networks.flatMap((network) => pipeliningsOf(calibration, network)),
    placement: networks.flatMap((network) => placementsOf(calibration, network)),
    plain: networks.flatMap(plainStepOf),
    lookedBack,
    hiddenBehindBoth: networks.map((network) => ({
      network,
      title: "exchange of factors, SPD",
      predicted: predictFactorCommunication(calibration.cluster, publishedRun(network), ["input", "gradient"]).optimal,
      published: spdKfacStages[network].forms.spd.factorCommunication,
    })),
    unpublished: predictUnpublished(calibration, lookedBack),
  };
};

/** Seconds of each stage of a second-order step. */
export interface KfacStages {
  /** Seconds of the forward and backward pass. */
  readonly passes: number;
  /** Seconds of the gradient exchange that the backward pass does not hide. */
  readonly gradientCommunication: number;
  readonly factorCompute: number;
  readonly factorCommunication: number;
  readonly inverseCompute: number;
  readonly inverseCommunication: number;
}

/**
 * K-FAC variants of the SPD-KFAC paper. With `d`, every rank inverts every factor. With `mpd`, layers are assigned to
 * ranks in turn. `spd` uses pipelining and balanced placement.
 */
export type PublishedForm = "d" | "mpd" | "spd";

/** Published stage times for one network on 64 GPUs. */
interface PublishedStages {
  readonly batchPerGpu: number;
  readonly forms: Readonly<Record<PublishedForm, KfacStages>>;
  /**
   * Seconds to compute and exchange the factors, by method of overlapping the exchange with the forward and backward
   * pass.
   */
  readonly pipelining: {
    /** Seconds if the exchange starts after all factors are computed. */
    readonly naive: number;
    /** Seconds if each factor is sent separately, immediately after it is computed. */
    readonly layerWise: number;
    /** Seconds if factors are fused into messages, up to a fixed message size. */
    readonly threshold: number;
    /** Seconds if factors are fused whenever this does not delay their exchange. */
    readonly optimal: number;
  };
  /**
   * Seconds to invert the factors, without and with the exchange of the inverses, by placement of the inversions on
   * ranks.
   */
  readonly placement: Readonly<
    Record<"everywhere" | "inTurn" | "balanced", { readonly inverseCompute: number; readonly withExchange: number }>
  >;
}

const stages = (row: readonly [number, number, number, number, number, number]): KfacStages => ({
  passes: row[0],
  gradientCommunication: row[1],
  factorCompute: row[2],
  factorCommunication: row[3],
  inverseCompute: row[4],
  inverseCommunication: row[5],
});

const placement = (inverseCompute: number, withExchange: number) => ({ inverseCompute, withExchange });

/**
 * Stages of K-FAC on 64 GPUs over 100 Gbit/s InfiniBand, with factors and inverses updated in each step.
 *
 * Source: Shi, Zhang and Li 2021, arXiv 2107.06533 (SPD-KFAC): values of its figures, taken from the scripts that plot
 * them (github.com/lzhangbv/kfac_pytorch).
 */
export const spdKfacStages: Readonly<Record<"ResNet-50" | "ResNet-152" | "DenseNet-201", PublishedStages>> = {
  "ResNet-50": {
    batchPerGpu: 32,
    forms: {
      d: stages([0.132, 0.0648, 0.2115, 0.17, 0.2742, 0]),
      mpd: stages([0.132, 0.0648, 0.2115, 0.17, 0.0512, 0.134]),
      spd: stages([0.132, 0.0648, 0.2115, 0.0981, 0.105, 0.0641]),
    },
    pipelining: { naive: 0.3814, layerWise: 0.4174, threshold: 0.3401, optimal: 0.3096 },
    placement: {
      everywhere: placement(0.2742, 0.2742),
      inTurn: placement(0.0512, 0.1852),
      balanced: placement(0.1049, 0.1691),
    },
  },
  "ResNet-152": {
    batchPerGpu: 8,
    forms: {
      d: stages([0.114, 0.159, 0.1927, 0.4391, 0.6759, 0]),
      mpd: stages([0.114, 0.159, 0.1927, 0.4359, 0.0539, 0.4378]),
      spd: stages([0.114, 0.159, 0.1927, 0.276, 0.2814, 0.1458]),
    },
    pipelining: { naive: 0.6285, layerWise: 0.7158, threshold: 0.5371, optimal: 0.4687 },
    placement: {
      everywhere: placement(0.6759, 0.6759),
      inTurn: placement(0.0539, 0.4917),
      balanced: placement(0.2814, 0.4271),
    },
  },
  "DenseNet-201": {
    batchPerGpu: 16,
    forms: {
      d: stages([0.178, 0.1863, 0.3186, 0.3317, 0.4818, 0]),
      mpd: stages([0.178, 0.1863, 0.3163, 0.3502, 0.0352, 0.468]),
      spd: stages([0.178, 0.1863, 0.3163, 0.2437, 0.4023, 0.0349]),
    },
    pipelining: { naive: 0.6665, layerWise: 0.7714, threshold: 0.5841, optimal: 0.56 },
    placement: {
      everywhere: placement(0.4818, 0.4818),
      inTurn: placement(0.0352, 0.5032),
      balanced: placement(0.4023, 0.4373),
    },
  },
};

/** Total sizes of the Kronecker factors of a network, in millions of elements. */
export interface FactorSizes {
  readonly layers: number;
  readonly inputSquares: number;
  readonly inputTriangles: number;
  readonly outputSquares: number;
  readonly outputTriangles: number;
  /** Number of weights, in millions, in the layers that have Kronecker factors. Includes the last layer's bias. */
  readonly parameters: number;
}

const sizes = (row: readonly [number, number, number, number, number, number]): FactorSizes => ({
  layers: row[0],
  inputSquares: row[1],
  inputTriangles: row[2],
  outputSquares: row[3],
  outputTriangles: row[4],
  parameters: row[5],
});

/**
 * Sizes of the Kronecker factors of several networks, computed from layer shapes independently of Skein's code. The
 * factor sizes of ResNet-50, counted as full squares, match the SPD-KFAC paper.
 */
export const factorSizes: Readonly<
  Record<"ResNet-50" | "ResNet-101" | "ResNet-152" | "DenseNet-121" | "DenseNet-201", FactorSizes>
> = {
  "ResNet-50": sizes([54, 124.64, 62.35, 29.21, 14.62, 25.5]),
  "ResNet-101": sizes([105, 233.83, 116.97, 49.26, 24.66, 44.44]),
  "ResNet-152": sizes([156, 323.74, 161.96, 65.78, 32.93, 60.04]),
  "DenseNet-121": sizes([121, 100.74, 50.42, 2.36, 1.18, 7.9]),
  "DenseNet-201": sizes([201, 261.71, 130.96, 3.59, 1.81, 19.78]),
};

/** Value of a metric after a number of completed steps. */
export type StepValue = readonly [step: number, value: number];

/** Loads of the experts of one layer over the steps of a run. */
export interface ExpertLoads {
  /** Name of the layer, such as `block-1`. */
  readonly layer: string;
  /** Numbers of completed steps, ascending. The other arrays of this object have one entry per step number. */
  readonly steps: readonly number[];
  /** Load of each expert at each step, loads[step][expert]: the number of tokens that chose the expert in the step. */
  readonly loads: readonly (readonly number[])[];
  /** Fraction of expert choices that were dropped for lack of capacity, by step. */
  readonly droppedShare: readonly number[];
}

/** A reassignment of experts to ranks. */
export interface ExpertMoves {
  readonly layer: string;
  readonly step: number;
  /** Number of experts that moved to another rank. */
  readonly moves: number;
  /**
   * Predicted load of the busiest rank divided by the mean load, before the move. `busiestAfter` is the ratio after the
   * move.
   */
  readonly busiestBefore: number;
  readonly busiestAfter: number;
}

/** Histogram of the values of a tensor, with statistics. */
export interface Histogram {
  /** Number of values, including infinities and NaN. */
  readonly size: number;
  readonly zeros: number;
  readonly nonFinite: number;
  /** Smallest finite value. If there are no finite values, `min`, `max`, `mean` and `norm` are null. */
  readonly min: number | null;
  readonly max: number | null;
  readonly mean: number | null;
  /** L2 norm of the finite values. Null if there are no finite values. */
  readonly norm: number | null;
  /**
   * Number of finite values in each bin. Bins have equal width from `min` to `max`; the last bin includes its upper
   * edge. There is one bin if `min` equals `max`, and none if there are no finite values.
   */
  readonly counts: readonly number[];
}

/** Histograms of a full model parameter, even if the parameter is sharded over ranks. */
export interface ParameterHistograms {
  readonly path: string;
  readonly shape: readonly number[];
  readonly weights: Histogram;
  /**
   * Histogram of the gradients that are passed to the optimizer of the next step. Absent: the parameter is not trained.
   */
  readonly gradients?: Histogram | undefined;
}

/** Histograms of all parameters of a run after a step. */
export interface StepHistograms {
  readonly step: number;
  readonly parameters: readonly ParameterHistograms[];
}

/** Content of the HTML page of a training run. */
export interface RunReport {
  readonly name: string;
  /** Description of the run: machine, backend, ranks, … */
  readonly about: string;
  /** Description of the run's origin: commit, versions, machine. Absent: unknown. */
  readonly origin?: string | undefined;
  readonly losses: readonly StepValue[];
  /** Metrics on held-out samples, such as `accuracy`, `bitsPerByte` and `loss`, by name. */
  readonly evaluations: Readonly<Record<string, readonly StepValue[]>>;
  readonly samplesPerSecond: readonly StepValue[];
  /**
   * Median share of the step time that a rank waits for collectives, 0 to 1. `exposedAllToAllShare` is the part of
   * `exposedShare` for all-to-alls of tokens.
   */
  readonly exposedShare?: number;
  readonly exposedAllToAllShare?: number;
  readonly experts: readonly ExpertLoads[];
  readonly moves: readonly ExpertMoves[];
  /** Histograms after the latest step that has them. Absent: the run has no histograms. */
  readonly histograms?: StepHistograms | undefined;
}

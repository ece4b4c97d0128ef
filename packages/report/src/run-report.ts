/** A value after `step` steps. */
export type StepValue = readonly [step: number, value: number];

/** Loads of the experts of a layer, step by step. */
export interface ExpertLoads {
  /** Name of the layer, such as `block-1`. */
  readonly layer: string;
  /** Number of completed steps, ascending. */
  readonly steps: readonly number[];
  /** loads[step][expert]: choices of all tokens of that step. */
  readonly loads: readonly (readonly number[])[];
  /** Share of the choices that were dropped for lack of capacity, by step. */
  readonly droppedShare: readonly number[];
}

/** A move of experts between ranks. */
export interface ExpertMoves {
  readonly layer: string;
  readonly step: number;
  /** Number of experts that moved. */
  readonly moves: number;
  /** Predicted load of the busiest rank divided by the mean load, before and after the move. */
  readonly busiestBefore: number;
  readonly busiestAfter: number;
}

/** Distribution of the values of a tensor. */
export interface Histogram {
  /** Number of values, including values that are not finite. */
  readonly size: number;
  readonly zeros: number;
  readonly nonFinite: number;
  /** Smallest finite value. Null if there are no finite values; so are `max`, `mean` and `norm`. */
  readonly min: number | null;
  readonly max: number | null;
  readonly mean: number | null;
  /** L2 norm of the finite values. */
  readonly norm: number | null;
  /**
   * Number of finite values per bin. Bins have equal width from `min` to `max`; the last bin includes its upper edge.
   * One bin if `min` equals `max`, no bins if there are no finite values.
   */
  readonly counts: readonly number[];
}

/** Histograms of a model parameter as a whole, even if it is sharded over ranks. */
export interface ParameterHistograms {
  readonly path: string;
  readonly shape: readonly number[];
  readonly weights: Histogram;
  /** Gradients as passed to the optimizer of the next step. Absent for a parameter that is not trained. */
  readonly gradients?: Histogram | undefined;
}

/** Histograms of all parameters of a run after a step. */
export interface StepHistograms {
  readonly step: number;
  readonly parameters: readonly ParameterHistograms[];
}

/** Content of the page of a training run. */
export interface RunReport {
  readonly name: string;
  /** Description of the run: machine, backend, ranks, … */
  readonly about: string;
  /** Description of the run's origin: commit, versions, machine. */
  readonly origin?: string | undefined;
  readonly losses: readonly StepValue[];
  /** Metrics on held-out samples, by name: `accuracy`, `bitsPerByte`, `loss`. */
  readonly evaluations: Readonly<Record<string, readonly StepValue[]>>;
  readonly samplesPerSecond: readonly StepValue[];
  /**
   * Median share of a step that waits for collectives, and the part of this share that waits for all-to-alls of tokens.
   */
  readonly exposedShare?: number;
  readonly exposedAllToAllShare?: number;
  readonly experts: readonly ExpertLoads[];
  readonly moves: readonly ExpertMoves[];
  /** The latest histograms. */
  readonly histograms?: StepHistograms | undefined;
}

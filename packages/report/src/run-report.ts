/** A value after so many steps. */
export type StepValue = readonly [step: number, value: number];

/** What the experts of a layer were given, step by step. */
export interface ExpertLoads {
  /** `block-1` */
  readonly layer: string;
  /** Steps done, ascending. */
  readonly steps: readonly number[];
  /** loads[step][expert]: choices of all tokens of that step. */
  readonly loads: readonly (readonly number[])[];
  /** Share of the choices that found no room, by step. */
  readonly droppedShare: readonly number[];
}

/** Experts of a layer that changed their ranks. */
export interface ExpertMoves {
  readonly layer: string;
  readonly step: number;
  /** How many experts. */
  readonly moves: number;
  /** Load of the busiest rank over that of a mean one, as predicted. */
  readonly busiestBefore: number;
  readonly busiestAfter: number;
}

/** The values of a tensor: how many there are, and how often they occur. */
export interface Histogram {
  /** All values, those that are not finite among them. */
  readonly size: number;
  readonly zeros: number;
  readonly nonFinite: number;
  /** Of finite values, like mean and norm; null where there is none. */
  readonly min: number | null;
  readonly max: number | null;
  readonly mean: number | null;
  /** L2. */
  readonly norm: number | null;
  /**
   * Of finite values, in bins of one width from `min` to `max`; the last bin has its upper edge, too. One bin where
   * both are the same, none where there is no finite value.
   */
  readonly counts: readonly number[];
}

/** A parameter of a model, as a whole, whoever of the ranks has which part. */
export interface ParameterHistograms {
  readonly path: string;
  readonly shape: readonly number[];
  readonly weights: Histogram;
  /** As the optimizer of the next step gets them. None of what is not trained. */
  readonly gradients?: Histogram | undefined;
}

/** Those of all parameters of a run after a step. */
export interface StepHistograms {
  readonly step: number;
  readonly parameters: readonly ParameterHistograms[];
}

/** What the page of a training run shows. */
export interface RunReport {
  readonly name: string;
  /** The run in words: machine, backend, ranks, … */
  readonly about: string;
  /** Where it comes from, in words: commit, versions, machine. */
  readonly origin?: string | undefined;
  readonly losses: readonly StepValue[];
  /** Of held-out samples, by name: `accuracy`, `bitsPerByte`, `loss`. */
  readonly evaluations: Readonly<Record<string, readonly StepValue[]>>;
  readonly samplesPerSecond: readonly StepValue[];
  /** Shares of a step, medians: waiting for collectives, and of that for tokens on their way to experts and back. */
  readonly exposedShare?: number;
  readonly exposedAllToAllShare?: number;
  readonly experts: readonly ExpertLoads[];
  readonly moves: readonly ExpertMoves[];
  /** The last that were taken. */
  readonly histograms?: StepHistograms | undefined;
}

import type { CurvatureFigures, FactorInverse, Layer, ObserveLayersOptions, Statistics } from "@skein/second-order";
import { type GradientTransformation, InvariantError, type Tensor } from "@skein/tensor-core";

/**
 * Curvature work of a step. "keep": uses the existing inverses. "observe": also gathers statistics. "refresh": gathers
 * statistics and recomputes inverses. "begin": the first refresh of a run, if it differs from later refreshes.
 */
export type CurvatureMode = "keep" | "observe" | "refresh" | "begin";

/** Display name of each mode, for compiled steps and traces. */
export const modeNames: Readonly<Record<CurvatureMode, string>> = {
  keep: "curvature kept",
  observe: "curvature observed",
  refresh: "curvature refreshed",
  begin: "curvature begun",
};

/**
 * Returns the flags for refreshing inverses in a curvature mode. `refresh`: inverses are recomputed. `first`: this is
 * the first refresh of a run.
 */
export const refreshing = (mode: CurvatureMode): { readonly refresh: boolean; readonly first: boolean } => ({
  refresh: mode === "refresh" || mode === "begin",
  first: mode === "begin",
});

/**
 * Curvature computation of a second-order optimizer: update rule, curvature mode of each step, and options for
 * statistics.
 */
export interface Curvature {
  /** Transforms gradients into updates: preconditioning, momentum, learning rate. */
  readonly rule: GradientTransformation<unknown>;
  /** Whether the state of `rule` contains `CurvatureFigures`. */
  readonly hasFigures: boolean;
  /**
   * Names of the K-FAC factors, in the order of the `stale` flags in the state of `rule`. Empty: the rule has no flags.
   */
  readonly factorNames: readonly string[];
  /**
   * Returns the curvature mode of a step.
   * @param updates number of updates before the step.
   */
  modeAt(updates: number): CurvatureMode;
  /**
   * Returns the options for gathering statistics in a traced step. Absent: the optimizer uses no statistics.
   * @param key random key of the step and rank, u32[2].
   */
  readonly observing: ((key: Tensor) => ObserveLayersOptions) | undefined;
  /** Inputs for planning K-FAC. Absent: the optimizer is not K-FAC. */
  readonly planned?: PlannedCurvature;
}

/** K-FAC settings of the job that planning needs. */
export interface PlannedCurvature {
  readonly layers: readonly Layer[];
  readonly inverse: FactorInverse;
  /** Maximum number of rows of a factor block. Infinity: factors are not divided into blocks. */
  readonly blockSize: number;
}

/** Returns the optimizer's state after processing the statistics of a step. Traced. */
export const observing = <State>(
  optimizer: GradientTransformation<unknown>,
  state: State,
  statistics: Statistics,
  mode: CurvatureMode,
): State =>
  mode === "keep" || optimizer.observe === undefined
    ? state
    : (optimizer.observe(state, statistics as never, refreshing(mode)) as State);

/**
 * Searches an optimizer's state, and returns the first result of `read` that is not undefined. States of chained
 * optimizers are lists, whose elements are searched in order.
 */
const findIn = <T>(state: unknown, read: (one: object) => T | undefined): T | undefined =>
  Array.isArray(state)
    ? state.map((one) => findIn(one, read)).find((found) => found !== undefined)
    : read(state as object);

/**
 * Returns one flag per entry of `factorNames`, set if the last refresh could not invert the K-FAC factor. `isOwn`:
 * whether the flags are valid on this rank only, because each rank inverts its own factors. Undefined: the optimizer
 * has no flags.
 */
export const staleFactors = <Leaf>(state: unknown): { readonly flags: Leaf; readonly isOwn: boolean } | undefined =>
  findIn(state, (one) => {
    const { shared, own } = one as Readonly<Partial<Record<"shared" | "own", { readonly stale?: Leaf }>>>;
    const flags = shared?.stale ?? own?.stale;
    return flags && { flags, isOwn: shared?.stale === undefined };
  });

/** Returns the curvature metrics from an optimizer's state. */
export const curvatureFigures = (state: unknown): CurvatureFigures => {
  const figures = findIn(state, (one) => (one as { readonly figures?: CurvatureFigures }).figures);
  if (figures === undefined) throw new InvariantError("an optimizer that uses curvature has no curvature figures");
  return figures;
};

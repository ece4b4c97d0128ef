import type { CurvatureFigures, FactorInverse, Layer, ObserveLayersOptions, Statistics } from "@skein/second-order";
import { type GradientTransformation, InvariantError, type Tensor } from "@skein/tensor-core";

/**
 * Curvature work of a step. "keep": use the known inverses. "observe": also gather statistics. "refresh": also
 * recompute inverses. "begin": the first refresh of a run, if it is done differently.
 */
export type CurvatureMode = "keep" | "observe" | "refresh" | "begin";

/** Names of modes in names of compiled steps, and so in traces. */
export const modeNames: Readonly<Record<CurvatureMode, string>> = {
  keep: "curvature kept",
  observe: "curvature observed",
  refresh: "curvature refreshed",
  begin: "curvature begun",
};

/** Options of an update for a mode. */
export const refreshing = (mode: CurvatureMode): { readonly refresh: boolean; readonly first: boolean } => ({
  refresh: mode === "refresh" || mode === "begin",
  first: mode === "begin",
});

/** Additions to a step for an optimizer that uses curvature, not only each gradient by itself. */
export interface Curvature {
  /** Transforms gradients to updates: preconditioning, momentum, learning rate. */
  readonly rule: GradientTransformation<unknown>;
  /** Whether the state of the rule holds `CurvatureFigures`. */
  readonly hasFigures: boolean;
  /**
   * Names of the factors that the entries of `stale` in the state of the rule describe. Empty: the rule has no such
   * state.
   */
  readonly factorNames: readonly string[];
  /** @param updates number of updates made before the step. */
  modeAt(updates: number): CurvatureMode;
  /**
   * Options for gathering statistics in a step; traced. Absent: the optimizer uses no statistics. @param key u32[2], of
   * the step and rank.
   */
  readonly observing: ((key: Tensor) => ObserveLayersOptions) | undefined;
  /** Inputs for planning K-FAC. Absent: another optimizer. */
  readonly planned?: PlannedCurvature;
}

/** Facts about K-FAC in a job that planning needs. */
export interface PlannedCurvature {
  readonly layers: readonly Layer[];
  readonly inverse: FactorInverse;
  /** Size of factor blocks. Infinity: factors are whole. */
  readonly blockSize: number;
}

/** The optimizer's state after processing the statistics of a step. Traced. */
export const observing = <State>(
  optimizer: GradientTransformation<unknown>,
  state: State,
  statistics: Statistics,
  mode: CurvatureMode,
): State =>
  mode === "keep" || optimizer.observe === undefined
    ? state
    : (optimizer.observe(state, statistics as never, refreshing(mode)) as State);

/** Find a part of an optimizer's state with `read`. States of chained optimizers are lists. */
const findIn = <T>(state: unknown, read: (one: object) => T | undefined): T | undefined =>
  Array.isArray(state)
    ? state.map((one) => findIn(one, read)).find((found) => found !== undefined)
    : read(state as object);

/**
 * Flags of the K-FAC factors that the last refresh could not invert, one per entry of `factorNames`. `isOwn`: the flags
 * are those of this rank, because each rank inverts its own factors.
 */
export const staleFactors = <Leaf>(state: unknown): { readonly flags: Leaf; readonly isOwn: boolean } | undefined =>
  findIn(state, (one) => {
    const { shared, own } = one as Readonly<Partial<Record<"shared" | "own", { readonly stale?: Leaf }>>>;
    const flags = shared?.stale ?? own?.stale;
    return flags && { flags, isOwn: shared?.stale === undefined };
  });

/** Get the curvature figures from an optimizer's state. */
export const curvatureFigures = (state: unknown): CurvatureFigures => {
  const figures = findIn(state, (one) => (one as { readonly figures?: CurvatureFigures }).figures);
  if (figures === undefined) throw new InvariantError("an optimizer that uses curvature has no curvature figures");
  return figures;
};

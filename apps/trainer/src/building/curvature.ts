import type { CurvatureFigures, FactorInverse, Layer, ObserveLayersOptions, Statistics } from "@skein/second-order";
import { type GradientTransformation, InvariantError, type Tensor } from "@skein/tensor-core";

/**
 * What a step does about curvature: use what is known, gather statistics as well, or derive inverses anew as well; for
 * the first time in a run, where that is done in another way.
 */
export type CurvatureMode = "keep" | "observe" | "refresh" | "begin";

/** In the names of compiled steps, and so in traces. */
export const modeNames: Readonly<Record<CurvatureMode, string>> = {
  keep: "curvature kept",
  observe: "curvature observed",
  refresh: "curvature refreshed",
  begin: "curvature begun",
};

/** What an update is told of a mode. */
export const refreshing = (mode: CurvatureMode): { readonly refresh: boolean; readonly first: boolean } => ({
  refresh: mode === "refresh" || mode === "begin",
  first: mode === "begin",
});

/** What a job whose optimizer looks at more than each gradient by itself adds to a step. */
export interface Curvature {
  /** From gradients to updates: preconditioning, momentum, learning rate. */
  readonly rule: GradientTransformation<unknown>;
  /** Whether the state of the rule holds `CurvatureFigures`. */
  readonly hasFigures: boolean;
  /** What the entries of `stale` in the state of the rule speak of; none where it has no such. */
  readonly factorNames: readonly string[];
  /** @param updates number of updates before the step. */
  modeAt(updates: number): CurvatureMode;
  /**
   * How a step gathers statistics; traced. None by optimizers that ask for none. @param key u32[2], of the step and
   * rank.
   */
  readonly observing: ((key: Tensor) => ObserveLayersOptions) | undefined;
  /** Of K-FAC: what a plan of its form rests on. */
  readonly planned?: PlannedCurvature;
}

/** What planning needs to know of K-FAC in a job. */
export interface PlannedCurvature {
  readonly layers: readonly Layer[];
  readonly inverse: FactorInverse;
  /** Infinity where factors are whole. */
  readonly blockSize: number;
}

/** The optimizer's state after it has taken in the statistics of a step. Traced. */
export const observing = <State>(
  optimizer: GradientTransformation<unknown>,
  state: State,
  statistics: Statistics,
  mode: CurvatureMode,
): State =>
  mode === "keep" || optimizer.observe === undefined
    ? state
    : (optimizer.observe(state, statistics as never, refreshing(mode)) as State);

/** What `read` finds in the state of one of the parts of an optimizer; where parts are chained, states are a list. */
const findIn = <T>(state: unknown, read: (one: object) => T | undefined): T | undefined =>
  Array.isArray(state)
    ? state.map((one) => findIn(one, read)).find((found) => found !== undefined)
    : read(state as object);

/**
 * Which factors the last refresh has made nothing of, for K-FAC: an entry for each of `factorNames`, those of the rank
 * alone where each inverts its own.
 */
export const staleFactors = <Leaf>(state: unknown): { readonly flags: Leaf; readonly isOwn: boolean } | undefined =>
  findIn(state, (one) => {
    const { shared, own } = one as Readonly<Partial<Record<"shared" | "own", { readonly stale?: Leaf }>>>;
    const flags = shared?.stale ?? own?.stale;
    return flags && { flags, isOwn: shared?.stale === undefined };
  });

/** The figures in an optimizer's state. */
export const curvatureFigures = (state: unknown): CurvatureFigures => {
  const figures = findIn(state, (one) => (one as { readonly figures?: CurvatureFigures }).figures);
  if (figures === undefined) throw new InvariantError("an optimizer that looks at curvature has no figures of it");
  return figures;
};

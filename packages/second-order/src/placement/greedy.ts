import { ArgumentError } from "@skein/tensor-core";
import { leastLoaded } from "../least-loaded.ts";
import type { Layer } from "../statistics/layer.ts";
import type { InversePlacement, LayerPlacement } from "./inverse-placement.ts";

/**
 * How many ranks precondition each layer for a share of them: `max(1, P · fraction)`.
 *
 * @throws ArgumentError where that is no whole number that divides P.
 */
export const gradientWorkers = (fraction: number, numRanks: number): number => {
  const workers = Math.max(1, numRanks * fraction);
  if (fraction >= 0 && fraction <= 1 && Number.isInteger(workers) && numRanks % workers === 0) return workers;
  throw new ArgumentError(
    `gradientWorkers: a fraction ${fraction} of ${numRanks} ranks is ${numRanks * fraction} gradient workers, which do not divide them; use 1, 1/${numRanks}, or another share that does`,
  );
};

/** The grid of ranks that factors are dealt out to, and what they cost. */
export interface GreedyOptions {
  readonly numRanks: number;
  /** Rows of the grid: ranks that precondition each layer. */
  readonly workers: number;
  /** What it takes to invert a factor of n rows. Default: n³. */
  readonly cost?: (size: number) => number;
  /** Put both factors of a layer on one rank. Default: true. */
  readonly isColocated?: boolean;
}

/**
 * Largest first to the least loaded: layers by what both factors cost to the column with the least to do, then each to
 * the row with the least in that column, both factors together or each by itself, the larger one first.
 *
 * The most that a column has is at most 4/3 − 1/(3 · columns) of the best.
 * Source: Graham 1969 for the bound; Pauloski et al. 2021 (KAISA), arXiv 2107.01739, for the two levels.
 */
export const placeGreedily = (
  layers: readonly Pick<Layer, "path" | "numInputs" | "numOutputs">[],
  { numRanks, workers, cost = (size) => size ** 3, isColocated = true }: GreedyOptions,
): InversePlacement => {
  const costs = layers.map(({ numInputs, numOutputs }) => [cost(numInputs), cost(numOutputs)] as const);
  const columns = leastLoaded(
    costs.map(([input, gradient]) => input + gradient),
    numRanks / workers,
  );
  const places = new Map<string, LayerPlacement>();
  for (let column = 0; column < numRanks / workers; column++) {
    const own = layers.flatMap((layer, i) => (columns[i] === column ? [{ layer, costs: costs[i]! }] : []));
    const rows = leastLoaded(
      own.flatMap(({ costs: [input, gradient] }) => (isColocated ? [input + gradient] : [input, gradient])),
      workers,
    );
    own.forEach(({ layer }, i) => {
      const [input, gradient] = isColocated ? [rows[i]!, rows[i]!] : [rows[2 * i]!, rows[2 * i + 1]!];
      places.set(layer.path, { column, input, gradient });
    });
  }
  return { workers, layers: Object.fromEntries(layers.map(({ path }) => [path, places.get(path)!])) };
};

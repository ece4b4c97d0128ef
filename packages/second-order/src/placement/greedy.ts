import { ArgumentError } from "@skein/tensor-core";
import { leastLoaded } from "../least-loaded.ts";
import type { Layer } from "../statistics/layer.ts";
import type { InversePlacement, LayerPlacement } from "./inverse-placement.ts";

/**
 * Returns the number of ranks that precondition each layer, for a fraction of all ranks: `max(1, P · fraction)`.
 *
 * @throws ArgumentError if the result is not an integer that divides P.
 * @example
 * ```ts
 * console.log(gradientWorkers(0.5, 8)); // 4
 * ```
 */
export const gradientWorkers = (fraction: number, numRanks: number): number => {
  const workers = Math.max(1, numRanks * fraction);
  if (fraction >= 0 && fraction <= 1 && Number.isInteger(workers) && numRanks % workers === 0) return workers;
  throw new ArgumentError(
    `gradientWorkers: a fraction ${fraction} of ${numRanks} ranks is ${numRanks * fraction} gradient workers, which do not divide them; use 1, 1/${numRanks}, or another share that does`,
  );
};

/** Options of `placeGreedily`: shape of the rank grid, and cost of inverting a factor. */
export interface GreedyOptions {
  readonly numRanks: number;
  /** Number of rows of the grid: the number of ranks that precondition each layer. */
  readonly workers: number;
  /** Returns the cost of inverting a factor of n rows. Default: n³. */
  readonly cost?: (size: number) => number;
  /** Whether to place both factors of a layer on one rank. Default: true. */
  readonly isColocated?: boolean;
}

/**
 * Greedy placement: largest first, to the least loaded. Layers are assigned to columns by the cost of both factors.
 * Then the factors of a layer are assigned to rows within the column, either together or separately.
 *
 * The maximum load of a column is at most 4/3 − 1/(3 · columns) times the optimum.
 * @example
 * ```ts
 * const layers = ["a", "b"].map((path) => ({ path, numInputs: 4, numOutputs: 2 }));
 * console.log(placeGreedily(layers, { numRanks: 2, workers: 1 }).workers); // 1
 * ```
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

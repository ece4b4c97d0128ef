import type { MatmulRequest } from "../kernel.ts";

/** How many of layouts and dtype differ. */
const differences = (a: MatmulRequest, b: MatmulRequest): number =>
  Number(a.transposeA !== b.transposeA) + Number(a.transposeB !== b.transposeB) + Number(a.dtype !== b.dtype);

/** Sum of squared logarithms of the ratios of sizes: a product twice as long is as far as one half as long. */
const distance = (a: MatmulRequest, b: MatmulRequest): number =>
  (["batch", "rows", "columns", "inner"] as const).reduce(
    (sum, size) => sum + Math.log2(Math.max(1, a[size]) / Math.max(1, b[size])) ** 2,
    0,
  );

/**
 * Find the measured product that is most like another one: the nearest in sizes among those of the same layout and
 * dtype, or, where there is none, among those of which the fewest differ. The first of equals.
 *
 * Cost: one pass over `measured`.
 */
export const nearestProduct = <M extends { readonly request: MatmulRequest }>(
  measured: Iterable<M>,
  request: MatmulRequest,
): M | undefined => {
  let nearest: { readonly measurement: M; readonly differ: number; readonly far: number } | undefined;
  for (const measurement of measured) {
    const [differ, far] = [differences(measurement.request, request), distance(measurement.request, request)];
    if (nearest === undefined || differ < nearest.differ || (differ === nearest.differ && far < nearest.far))
      nearest = { measurement, differ, far };
  }
  return nearest?.measurement;
};

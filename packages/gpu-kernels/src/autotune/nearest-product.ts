import type { MatmulRequest } from "../kernel.ts";

/** Returns the number of layout and dtype properties in which two products differ. */
const differences = (a: MatmulRequest, b: MatmulRequest): number =>
  Number(a.transposeA !== b.transposeA) + Number(a.transposeB !== b.transposeB) + Number(a.dtype !== b.dtype);

/**
 * Returns the sum of squared log2 ratios of the sizes. A product twice as long is as distant as a product half as long.
 */
const distance = (a: MatmulRequest, b: MatmulRequest): number =>
  (["batch", "rows", "columns", "inner"] as const).reduce(
    (sum, size) => sum + Math.log2(Math.max(1, a[size]) / Math.max(1, b[size])) ** 2,
    0,
  );

/**
 * Finds the most similar measured product. Products of the same layout and dtype are compared first; if there are none,
 * products with the fewest differences in layout and dtype. Among these products, the nearest in sizes is returned, or
 * the first of several equally near products.
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

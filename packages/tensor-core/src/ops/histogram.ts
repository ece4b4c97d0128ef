import { ShapeError } from "../errors.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount, formatSpec } from "../shape.ts";

/**
 * Maximum number of bins. At 2¹⁶ bins, 8 of the 24 bits of an f32 remain for the position within a bin. More bins are
 * slow on all devices.
 */
const maxBins = 2 ** 16;

/**
 * Smallest normal f32. Devices may flush smaller magnitudes to 0, so all implementations must flush smaller magnitudes.
 */
const smallest = 2 ** -126;
const flush = (x: number): number => (Math.abs(x) < smallest ? 0 : x);

/** Exclusive maximum of the width `high − low`. With a larger width, `scale` may be subnormal. */
const widest = 2 ** 126;

export type HistogramParams = { readonly bins: number };

/**
 * Histogram: counts of f32 values in bins of equal width over [low, high]. With `width = high − low` and `scale = bins
 * / width`, the bin of x is `min(⌊(x − low) · scale⌋, bins − 1)`, or the last bin if `scale` is infinite. Each step is
 * rounded to f32, and magnitudes below 2⁻¹²⁶ are treated as 0, so that all backends return equal counts.
 */
export const histogramOperator: Operator = defineOperator<HistogramParams>({
  name: "histogram",
  infer: ([x, low, high], { bins }) => {
    if (x!.dtype !== "f32")
      throw new ShapeError("histogram", `dtype ${x!.dtype} is not supported, expected f32; cast the operand first`);
    for (const edge of [low!, high!]) {
      if (edge.dtype !== "f32" || edge.shape.length !== 0)
        throw new ShapeError(
          "histogram",
          `low and high must be f32 scalars, got ${formatSpec(edge)}; reduce or reshape it to f32[]`,
        );
    }
    if (!Number.isInteger(bins) || bins < 1 || bins > maxBins)
      throw new ShapeError(
        "histogram",
        `bins is ${bins}, but it must be an integer from 1 to ${maxBins}; choose another number`,
      );
    return [{ dtype: "i32", shape: [bins] }];
  },
  vjp: () => [undefined, undefined, undefined],
  cost: ([x], [counts]) => ({
    flops: 4 * elementCount(x!.shape),
    bytesRead: byteLength(x!),
    bytesWritten: byteLength(counts!),
  }),
  reference: ([x, lowest, highest], { bins }) => {
    const counts = new Float64Array(bins);
    const [low, high] = [lowest!, highest!].map(({ data }) => flush(Math.fround(data[0]!))) as [number, number];
    const width = flush(Math.fround(high - low));
    const scale = Math.fround(bins / width);
    if (!(low <= high && width < widest)) return [counts];
    for (const value of x!.data) {
      const flushed = flush(Math.fround(value));
      if (!(flushed >= low && flushed <= high)) continue;
      const bin = scale === Infinity ? bins - 1 : Math.floor(Math.fround(flush(Math.fround(flushed - low)) * scale));
      counts[Math.min(bin, bins - 1)]!++;
    }
    return [counts];
  },
});

import { ShapeError } from "../errors.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount, formatSpec } from "../shape.ts";

/** 8 of the 24 bits of an f32 are left for the position within a bin; also, no device counts more bins fast. */
const maxBins = 2 ** 16;

/** Devices may flush values nearer to 0 to zero, so every implementation must. */
const smallest = 2 ** -126;
const flush = (x: number): number => (Math.abs(x) < smallest ? 0 : x);

/** From this width on, the scale of bins is subnormal. */
const widest = 2 ** 126;

export type HistogramParams = { readonly bins: number };

/**
 * Counts of f32 values by bins of equal width over [low, high], every step rounded to f32 so that all backends have
 * equal counts: with `width = high − low` and `scale = bins / width`, the bin of x is `min(⌊(x − low) · scale⌋, bins −
 * 1)`, and the last bin if `scale` is infinite. Magnitudes below 2⁻¹²⁶ count as 0.
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

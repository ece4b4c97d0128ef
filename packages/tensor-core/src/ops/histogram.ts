import { ShapeError } from "../errors.ts";
import { defineOperator, type Operator } from "../graph/operator.ts";
import { byteLength, elementCount, formatSpec } from "../shape.ts";

/** Of 24 bits of an f32, 8 are left for the place within a bin; and no device counts more bins fast. */
const maxBins = 2 ** 16;

/** Devices may take what is nearer to 0 for 0, so all must. */
const smallest = 2 ** -126;
const flush = (x: number): number => (Math.abs(x) < smallest ? 0 : x);

/** Widths from here on have a subnormal bin scale. */
const widest = 2 ** 126;

export type HistogramParams = { readonly bins: number };

/**
 * Counts of f32 values by bins of equal width over [low, high], every step rounded to f32 so that all backends agree to
 * the last count: with `width = high − low` and `scale = bins / width`, the bin of x is `min(⌊(x − low) · scale⌋, bins
 * − 1)`, and the last bin where `scale` is infinite. Numbers and differences nearer to 0 than 2⁻¹²⁶ count as 0.
 */
export const histogramOperator: Operator = defineOperator<HistogramParams>({
  name: "histogram",
  infer: ([x, low, high], { bins }) => {
    if (x!.dtype !== "f32")
      throw new ShapeError("histogram", `dtype ${x!.dtype} is not supported, it takes f32; cast the operand first`);
    for (const edge of [low!, high!]) {
      if (edge.dtype !== "f32" || edge.shape.length !== 0)
        throw new ShapeError(
          "histogram",
          `the range is given by f32 scalars, got ${formatSpec(edge)}; reduce or reshape it to f32[]`,
        );
    }
    if (!Number.isInteger(bins) || bins < 1 || bins > maxBins)
      throw new ShapeError("histogram", `${bins} bins were asked for; use an integer from 1 to ${maxBins}`);
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
      const own = flush(Math.fround(value));
      if (!(own >= low && own <= high)) continue;
      const bin = scale === Infinity ? bins - 1 : Math.floor(Math.fround(flush(Math.fround(own - low)) * scale));
      counts[Math.min(bin, bins - 1)]!++;
    }
    return [counts];
  },
});

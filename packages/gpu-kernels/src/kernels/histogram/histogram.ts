import type { BindingSource, DeviceFacts, Pass } from "../../kernel.ts";
import { workgroupsWanted } from "../reduce/rows.ts";
import type { ScratchBlocks } from "../scratch-blocks.ts";
import { wgsl } from "../../wgsl.ts";

const lanes = 256;

/**
 * Number of vectors of four that an invocation loads before it counts the first vector. The vectors are counted in a
 * loop, because CPU drivers need gigabytes of memory to compile copies of the loop body.
 */
const unroll = 4;

/**
 * Maximum number of bins in workgroup memory, on every device. Larger histograms are counted directly in the result.
 */
export const maxLocalBins = 4096;

/**
 * Maximum number of copies per bin: the number of banks in workgroup memory. With copies, adjacent values in the same
 * bin are counted in parallel.
 */
const maxCopies = 32;

/**
 * Returns the binding of the range: `x: low, y: high, z: scale` as bits of f32. `w` is 0 if nothing is counted, 1 if
 * values are counted in bins, and 2 if all values in the range are counted in the last bin.
 */
const rangeBinding = (source: BindingSource, access: "read" | "write") =>
  ({ name: "range", type: "array<vec4<u32>>", source, access }) as const;

/**
 * WGSL that flushes numbers of magnitude less than 2⁻¹²⁶ to 0. Works on bits, because devices may or may not flush
 * subnormals when they read floats.
 */
const flushText = `fn flush_bits(bits: u32) -> u32 { return select(bits, 0u, (bits & 0x7fffffffu) < 0x00800000u); }`;

/**
 * Clears the bins, and computes the correctly rounded quotient `scale = bins / width` from 25 binary digits of the
 * mantissas' quotient, rounded with ties to even. The division of a device may be rounded incorrectly.
 */
const rangePass = (bins: number, range: BindingSource): Pass => ({
  label: "histogram, range",
  bindings: [
    { name: "low", type: "array<u32>", source: { input: 1 }, access: "read" },
    { name: "high", type: "array<u32>", source: { input: 2 }, access: "read" },
    { name: "counts", type: "array<u32>", source: { output: 0 }, access: "write" },
    rangeBinding(range, "write"),
  ],
  workgroupSize: lanes,
  groups: Math.ceil(bins / lanes),
  sizes: { bins },
  code: wgsl`
    ${flushText}
    fn scale_bits(width: u32) -> u32 {
      let top = firstLeadingBit(sizes.bins);
      let divisor = (width & 0x7fffffu) | 0x800000u;
      var rest = sizes.bins << (23u - top);
      var exponent = i32(top) + 254 - i32(width >> 23u);
      if (rest < divisor) { rest <<= 1u; exponent--; }
      var digits = 0u;
      for (var i = 0u; i < 25u; i++) {
        digits <<= 1u;
        if (rest >= divisor) { rest -= divisor; digits |= 1u; }
        rest <<= 1u;
      }
      let even = (digits >> 1u) & 1u;
      let up = select(0u, 1u, (digits & 1u) == 1u && (rest != 0u || even == 1u));
      if (exponent >= 255) { return 0x7f800000u; }
      return min((u32(exponent - 1) << 23u) + (digits >> 1u) + up, 0x7f800000u);
    }
    fn main(group: u32, lane: u32) {
      let bin = group * ${lanes}u + lane;
      if (bin < sizes.bins) { counts[bin] = 0u; }
      if (bin > 0u) { return; }
      let least = flush_bits(low[0]);
      let greatest = flush_bits(high[0]);
      let finite = max(least & 0x7fffffffu, greatest & 0x7fffffffu) < 0x7f800000u;
      let width = flush_bits(bitcast<u32>(bitcast<f32>(greatest) - bitcast<f32>(least)));
      // Not below 0, and below 2^126.
      if (!finite || width >= 0x7e800000u) { range[0] = vec4<u32>(); return; }
      var scale = 0x7f800000u;
      if (width > 0u) { scale = scale_bits(width); }
      range[0] = vec4<u32>(least, greatest, scale, select(1u, 2u, scale == 0x7f800000u));
    }
  `,
});

/**
 * WGSL of two functions. `fn order_of(bits: u32) -> i32` returns integers in the order of the numbers, with NaN outside
 * of their range. `fn bin_of(bits: u32, at: u32, edges: vec4<u32>) -> u32` returns the bin, or `sizes.bins` for values
 * outside of the histogram's range.
 */
const binText = wgsl`
  ${flushText}
  fn order_of(bits: u32) -> i32 { return bitcast<i32>(bits ^ ((bits >> 31u) * 0x7fffffffu)); }
  fn bin_of(bits: u32, at: u32, edges: vec4<u32>) -> u32 {
    let own = flush_bits(bits);
    let order = order_of(own);
    let inside = at < sizes.count && order >= order_of(edges.x) && order <= order_of(edges.y);
    let difference = bitcast<f32>(flush_bits(bitcast<u32>(bitcast<f32>(own) - bitcast<f32>(edges.x))));
    let bin = select(min(u32(difference * bitcast<f32>(edges.z)), sizes.bins - 1u), sizes.bins - 1u, edges.w == 2u);
    return select(sizes.bins, bin, inside);
  }
`;

const countPass = (count: number, bins: number, range: BindingSource, facts: DeviceFacts): Pass => {
  const local = bins <= maxLocalBins;
  let copies = 1;
  while (copies < maxCopies && 2 * copies * bins <= maxLocalBins) copies *= 2;
  const vectors = Math.ceil(count / 4);
  const each = lanes * unroll;
  // At least eight vectors per invocation, so that counting takes longer than adding the bins to the result.
  const parts = Math.max(1, Math.min(workgroupsWanted(facts), Math.floor(vectors / (2 * each))));
  const chunk = Math.ceil(vectors / parts);
  const js = Array.from({ length: unroll }, (_, j) => j);
  return {
    label: `histogram, ${local ? `${copies} copies` : "no copies"}`,
    bindings: [
      { name: "x", type: "array<vec4<u32>>", source: { input: 0 }, access: "read" },
      { name: "counts", type: "array<atomic<u32>>", source: { output: 0 }, access: "write" },
      rangeBinding(range, "read"),
    ],
    workgroupSize: lanes,
    groups: Math.ceil(vectors / chunk),
    sizes: { count, vectors, chunk, bins },
    code: wgsl`
      ${binText}
      ${
        local
          ? wgsl`
            var<workgroup> local: array<atomic<u32>, ${copies * bins}>;
            fn count(bin: u32, lane: u32) { if (bin < sizes.bins) { atomicAdd(&local[bin * ${copies}u + lane % ${copies}u], 1u); } }
          `
          : "fn count(bin: u32, lane: u32) { if (bin < sizes.bins) { atomicAdd(&counts[bin], 1u); } }"
      }
      fn main(group: u32, lane: u32) {
        let edges = range[0];
        ${
          local
            ? wgsl`
              for (var i = lane; i < ${copies * bins}u; i += ${lanes}u) { atomicStore(&local[i], 0u); }
              workgroupBarrier();
            `
            : ""
        }
        let begin = group * sizes.chunk;
        let stop = select(min(begin + sizes.chunk, sizes.vectors), begin, edges.w == 0u);
        for (var v0 = begin + lane; v0 < stop; v0 += ${each}u) {
          var taken: array<vec4<u32>, ${unroll}>;
          ${js.map((j) => `taken[${j}] = x[min(v0 + ${j * lanes}u, sizes.vectors - 1u)];`)}
          for (var i = 0u; i < ${4 * unroll}u; i++) {
            let v = v0 + (i >> 2u) * ${lanes}u;
            count(bin_of(taken[i >> 2u][i & 3u], select(sizes.count, 4u * v + (i & 3u), v < stop), edges), lane);
          }
        }
        ${
          local
            ? wgsl`
              workgroupBarrier();
              for (var bin = lane; bin < sizes.bins; bin += ${lanes}u) {
                var found = 0u;
                for (var i = 0u; i < ${copies}u; i++) { found += atomicLoad(&local[bin * ${copies}u + i]); }
                if (found > 0u) { atomicAdd(&counts[bin], found); }
              }
            `
            : ""
        }
      }
    `,
  };
};

/**
 * Counts `count` values in bins of equal width. Each workgroup counts in its own memory, then adds its counts to the
 * result. Integer sums do not depend on the order of additions.
 *
 * Bytes: the values are read once, and each workgroup writes 4·bins bytes.
 */
export const histogramPasses = (
  count: number,
  bins: number,
  blocks: ScratchBlocks,
  facts: DeviceFacts,
): readonly Pass[] => {
  const range = blocks.take(4);
  return [rangePass(bins, range), ...(count === 0 ? [] : [countPass(count, bins, range, facts)])];
};

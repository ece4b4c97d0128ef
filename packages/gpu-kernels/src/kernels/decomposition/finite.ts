import type { BindingSource, Pass } from "../../kernel.ts";
import { wgsl } from "../../wgsl.ts";

// Largest magnitudes are compared as their bits: so NaN is above infinity and that above all numbers, which comparisons
// of floats may be compiled away for. Matrices are scaled by the power of two that brings the largest magnitude into
// [1, 2) (to 2^127 and above: [2, 4)), so that squares neither overflow nor vanish.

/** Bits of infinity: what is not below is no finite number. */
export const infinite = "0x7f800000u";

/** WGSL of `fn scale_of(bits) -> f32` and `fn unscale_of(bits) -> f32`, its reciprocal, and of `fn not_a_number()`. */
export const scaleFunctions: string = wgsl`
  var<private> never: u32 = 0u;
  fn not_a_number() -> f32 { return bitcast<f32>(0x7fc00000u | never); }
  fn exponent_of(bits: u32) -> u32 { return clamp(bits >> 23u, 1u, 253u); }
  fn scale_of(bits: u32) -> f32 { return bitcast<f32>((254u - exponent_of(bits)) << 23u); }
  fn unscale_of(bits: u32) -> f32 { return bitcast<f32>(exponent_of(bits) << 23u); }
`;

/** Words of `info` per matrix: the largest magnitude, and what a plan remembers besides. */
export interface Largest {
  readonly batch: number;
  readonly rows: number;
  readonly columns: number;
  /** Entries above the diagonal do not count. */
  readonly lower: boolean;
  readonly info: BindingSource;
  readonly words: number;
}

const lanes = 256;

/**
 * Write the bits of the largest magnitude of each matrix to the first of its words of `info`; to the second whether all
 * is finite, and zeros behind. One workgroup per matrix.
 */
export const largestPass = ({ batch, rows, columns, lower, info, words }: Largest): Pass => ({
  label: "largest magnitude",
  bindings: [
    { name: "a", type: "array<u32>", source: { input: 0 }, access: "read" },
    { name: "info", type: "array<u32>", source: info, access: "write" },
  ],
  workgroupSize: lanes,
  groups: batch,
  sizes: { rows, columns, words },
  code: wgsl`
    var<workgroup> largest: atomic<u32>;
    fn main(group: u32, lane: u32) {
      var most = 0u;
      let count = sizes.rows * sizes.columns;
      for (var at = lane; at < count; at += ${lanes}u) {
        ${lower ? "if (at % sizes.columns > at / sizes.columns) { continue; }" : ""}
        most = max(most, a[group * count + at] & 0x7fffffffu);
      }
      atomicMax(&largest, most);
      workgroupBarrier();
      for (var word = lane; word < sizes.words; word += ${lanes}u) {
        let bits = atomicLoad(&largest);
        info[group * sizes.words + word] = select(select(0u, 1u, word == 1u && bits < ${infinite}), bits, word == 0u);
      }
    }
  `,
});

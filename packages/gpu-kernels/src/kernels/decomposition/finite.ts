import type { BindingSource, Pass } from "../../kernel.ts";
import { wgsl } from "../../wgsl.ts";

// Maximum magnitudes are compared as their bits, so that NaN is above infinity, and infinity is above all numbers.
// Float comparisons are not used, because compilers may remove them if they involve NaN or infinity. Matrices are
// scaled by the power of two that moves the maximum magnitude into [1, 2) (for 2^127 and above: [2, 4)), so that
// squares neither overflow nor underflow.

/** Bits of infinity. Finite numbers have smaller bits. */
export const infinite = "0x7f800000u";

/**
 * WGSL of three functions. `scale_of(bits) -> f32` returns the power of two that scales a magnitude with the given bits
 * to the range from 1 to 2. `unscale_of(bits) -> f32` returns its reciprocal. `not_a_number()` returns NaN.
 */
export const scaleFunctions: string = wgsl`
  var<private> never: u32 = 0u;
  fn not_a_number() -> f32 { return bitcast<f32>(0x7fc00000u | never); }
  fn exponent_of(bits: u32) -> u32 { return clamp(bits >> 23u, 1u, 253u); }
  fn scale_of(bits: u32) -> f32 { return bitcast<f32>((254u - exponent_of(bits)) << 23u); }
  fn unscale_of(bits: u32) -> f32 { return bitcast<f32>(exponent_of(bits) << 23u); }
`;

/**
 * Options of `largestPass`. `words` is the number of words per matrix in the scratch block `info`: the bits of the
 * maximum magnitude, and additional data of the plan.
 */
export interface Largest {
  readonly batch: number;
  readonly rows: number;
  readonly columns: number;
  /** Whether to ignore entries above the diagonal. */
  readonly lower: boolean;
  readonly info: BindingSource;
  readonly words: number;
}

const lanes = 256;

/**
 * Writes the words of each matrix in `info`: the bits of the maximum magnitude, then whether all entries are finite,
 * then zeros. One workgroup per matrix.
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

import type { PoolingGeometry } from "./geometry.ts";
import { wgsl } from "../../wgsl.ts";

// WGSL that the pooling kernels share. One invocation processes four adjacent channels, or one channel if the number of
// channels is not a multiple of four.

/**
 * Channels that one invocation processes: the WGSL type of their values, the u32 and bool vector types with the same
 * length, and the number of vectors per pixel.
 */
export interface Lanes {
  readonly vectored: boolean;
  readonly float: string;
  readonly word: string;
  readonly flag: string;
  /** Number of channel vectors per pixel. */
  readonly perPixel: number;
}

export const lanesOf = (channels: number): Lanes =>
  channels % 4 === 0
    ? { vectored: true, float: "vec4<f32>", word: "vec4<u32>", flag: "vec4<bool>", perPixel: channels / 4 }
    : { vectored: false, float: "f32", word: "u32", flag: "bool", perPixel: channels };

/**
 * Returns WGSL of `place_of(at, …) -> vec4<u32>(image, row, column, channel)` for a grid of `rows × columns` positions
 * per image. `channel` counts vectors.
 */
export const coordinatesFunction = (name: string, rows: number, columns: number, { perPixel }: Lanes): string => wgsl`
  fn ${name}(at: u32) -> vec4<u32> {
    let pixel = at / ${perPixel}u;
    let line = pixel / ${columns}u;
    return vec4<u32>(line / ${rows}u, line % ${rows}u, pixel % ${columns}u, at % ${perPixel}u);
  }
`;

/**
 * Returns WGSL that declares the range of the window's pixels inside the image, for the window at `(i, j)`, as
 * `first_y`, `end_y`, `first_x`, `end_x`.
 */
export const windowBounds = ({ image, window, stride, before }: PoolingGeometry, i: string, j: string): string =>
  (
    [
      ["y", 0, i],
      ["x", 1, j],
    ] as const
  )
    .map(
      ([name, dim, at]) => wgsl`
        let corner_${name} = i32(${at} * ${stride[dim]}u) - ${before[dim]};
        let first_${name} = u32(max(corner_${name}, 0));
        let end_${name} = u32(clamp(corner_${name} + ${window[dim]}, 0, ${image[dim]}));
      `,
    )
    .join("\n");

/** Returns WGSL of the vector index at `(image n, row, column, channel)`, for images of `rows × columns`. */
export const vectorIndex = (
  n: string,
  row: string,
  column: string,
  channel: string,
  [rows, columns]: readonly [number, number],
  { perPixel }: Lanes,
): string => `((${n} * ${rows}u + ${row}) * ${columns}u + ${column}) * ${perPixel}u + ${channel}`;

/**
 * Returns WGSL of `beats(value, best) -> flag`, the comparison for a maximum: true for a larger value or the first NaN,
 * false for equal values. Works on bits, because WGSL does not define comparisons with NaN.
 */
export const beatsFunction = ({ float, word, flag }: Lanes): string => wgsl`
  fn is_nan(x: ${float}) -> ${flag} { return (bitcast<${word}>(x) & ${word}(0x7fffffffu)) > ${word}(0x7f800000u); }
  fn beats(value: ${float}, best: ${float}) -> ${flag} {
    return select(value > best, ${flag}(true), is_nan(value)) & !is_nan(best);
  }
`;

/**
 * Returns WGSL that declares the ranges of the windows that contain an image pixel: `first_i` … `end_i` for row `y`,
 * and `first_j` … `end_j` for column `x`. Windows after the last are omitted.
 */
export const windowsOver = ({ positions, window, stride, before }: PoolingGeometry, y: string, x: string): string =>
  (
    [
      ["i", 0, y],
      ["j", 1, x],
    ] as const
  )
    .map(([name, dim, at]) => {
      const last = `(${at} + ${before[dim]}u)`;
      // Index of the first window: ⌈(at + before − window + 1) / stride⌉, at least 0.
      const first = `(max(${last} + ${stride[dim]}u, ${window[dim]}u) - ${window[dim]}u) / ${stride[dim]}u`;
      return wgsl`
        let first_${name} = ${first};
        let end_${name} = min(${last} / ${stride[dim]}u + 1u, ${positions[dim]}u);
      `;
    })
    .join("\n");

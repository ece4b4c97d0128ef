import { channelsType, isVectored, type Stored } from "./gather-wgsl.ts";
import type { Geometry } from "./geometry.ts";
import type { Binding } from "../../kernel.ts";
import { wgsl } from "../../wgsl.ts";

// WGSL of the gradient of a weight, `dw[tap, q, o] = Σ_pixels x[pixel at tap, q] · g[pixel, o]`.

/** Returns the row count (taps · channels) and column count of one group's product. */
export const weightSizes = ({
  kernel,
  channels,
  outChannels,
  groups,
}: Geometry): { rows: number; inner: number; columns: number } => ({
  rows: (kernel[0] * kernel[1] * channels) / groups,
  inner: channels / groups,
  columns: outChannels / groups,
});

/** Returns the number of pixels in all results, which is the number of terms per sum. */
export const pixelsOf = ({ batch, positions }: Geometry): number => batch * positions[0] * positions[1];

/**
 * Returns WGSL of `corner_of(p) -> vec3<i32>`, which returns the image, row and column that tap 0 of result pixel p
 * reads; `shift_of(tap) -> vec2<i32>`; and `image_pixel(corner, shift) -> i32`, which returns −1 outside of the image.
 */
export const cornerFunctions = ({ image, kernel, positions, stride, before, dilation }: Geometry): string => {
  const checks = ([0, 1] as const).flatMap((dim) => {
    const last = (positions[dim] - 1) * stride[dim] - before[dim] + (kernel[dim] - 1) * dilation[dim];
    return before[dim] === 0 && last < image[dim] ? [] : [`u32(${"yx"[dim]}) < ${image[dim]}u`];
  });
  return wgsl`
    fn corner_of(p: u32) -> vec3<i32> {
      let line = p / ${positions[1]}u;
      return vec3<i32>(i32(line / ${positions[0]}u), i32((line % ${positions[0]}u) * ${stride[0]}u) - ${before[0]}, i32((p % ${positions[1]}u) * ${stride[1]}u) - ${before[1]});
    }
    fn shift_of(tap: u32) -> vec2<i32> {
      return vec2<i32>(i32(tap / ${kernel[1]}u) * ${dilation[0]}, i32(tap % ${kernel[1]}u) * ${dilation[1]});
    }
    fn image_pixel(corner: vec3<i32>, shift: vec2<i32>) -> i32 {
      let y = corner.y + shift.x;
      let x = corner.z + shift.y;
      return select(-1, (corner.x * ${image[0]} + y) * ${image[1]} + x, ${checks.length > 0 ? checks.join(" && ") : "true"});
    }
  `;
};

/**
 * Returns WGSL of `cotangent_at(p, column, group) -> vec4<f32>`, which returns four columns of result pixel p. Columns
 * after the last are undefined.
 */
export const cotangentFunction = (columns: number, groups: number): string => {
  const width = groups * columns;
  if (isVectored(columns))
    return wgsl`
      fn cotangent_at(p: u32, column: u32, group: u32) -> vec4<f32> {
        return vec4<f32>(cotangents[(p * ${width}u + group * ${columns}u + min(column, ${columns - 4}u)) / 4u]);
      }
    `;
  const at = [0, 1, 2, 3].map((i) => `f32(cotangents[first + min(column + ${i}u, ${columns - 1}u)])`);
  return wgsl`
    fn cotangent_at(p: u32, column: u32, group: u32) -> vec4<f32> {
      let first = p * ${width}u + group * ${columns}u;
      return vec4<f32>(${at.join(", ")});
    }
  `;
};

/**
 * Returns WGSL of `put_weight(row, column, group, value)`, which writes four columns of a row, offset by `shift`
 * elements, and omits columns after the last.
 */
export const putWeightFunction = ({
  rows,
  columns,
  groups,
  result,
}: {
  rows: number;
  columns: number;
  groups: number;
  result: Stored;
}): string => {
  const index = `shift + row * ${groups * columns}u + group * ${columns}u + column`;
  const put = isVectored(columns)
    ? `result[(${index}) / 4u] = vec4<${result}>(value);`
    : wgsl`
      let index = ${index};
      for (var j = 0u; j < min(4u, ${columns}u - column); j++) { result[index + j] = ${result}(value[j]); }
    `;
  return wgsl`
    var<private> shift: u32;
    fn put_weight(row: u32, column: u32, group: u32, value: vec4<f32>) {
      if (row >= ${rows}u || column >= ${columns}u) { return; }
      ${put}
    }
  `;
};

/** Returns the bindings of a pass that writes `splits` partial results, or the result itself. */
export const weightBindings = (
  vectored: { readonly images: boolean; readonly columns: boolean },
  splits: number,
  operands: Stored,
  result: Stored,
): Binding[] => [
  { name: "images", type: channelsType(operands, vectored.images), source: { input: 0 }, access: "read" },
  { name: "cotangents", type: channelsType(operands, vectored.columns), source: { input: 1 }, access: "read" },
  {
    name: "result",
    type: channelsType(result, vectored.columns),
    source: splits > 1 ? { scratch: 0 } : { output: 0 },
    access: "write",
  },
];

/** Returns the number of elements of a weight, rounded up to complete vectors: the size of one partial result. */
export const weightLength = ({ kernel, channels, outChannels, groups }: Geometry): number =>
  Math.ceil((((kernel[0] * kernel[1] * channels) / groups) * outChannels) / 4) * 4;

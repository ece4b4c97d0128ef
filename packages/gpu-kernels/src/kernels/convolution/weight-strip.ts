import type { Pass } from "../../kernel.ts";
import { isVectored, type Stored, opaqueBound } from "./gather-wgsl.ts";
import { type Geometry, isDepthwise } from "./geometry.ts";
import {
  cornerFunctions,
  cotangentFunction,
  pixelsOf,
  putWeightFunction,
  weightBindings,
  weightLength,
  weightSizes,
} from "./weight-wgsl.ts";
import { wgsl } from "../../wgsl.ts";

const workgroupSize = 64;
const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

/** Maximum number of rows of the product per invocation. With this number, the sums of a workgroup fit in 16 KiB. */
const maxRowsEach = 12;

export interface WeightStripOptions {
  readonly splits: number;
  readonly operands: Stored;
  readonly result: Stored;
}

const sizesOf = (geometry: Geometry) => {
  const depthwise = isDepthwise(geometry);
  const [groups, taps] = [depthwise ? 1 : geometry.groups, geometry.kernel[0] * geometry.kernel[1]];
  const rows = depthwise ? taps : weightSizes(geometry).rows;
  const columns = geometry.outChannels / groups;
  const chunks = Math.ceil(rows / maxRowsEach);
  const columnLanes = Math.min(Math.ceil(columns / 4), 16);
  return {
    depthwise,
    groups,
    rows,
    columns,
    inner: rows / taps,
    chunks,
    rowsEach: Math.ceil(rows / chunks),
    columnLanes,
    pixelLanes: Math.floor(workgroupSize / columnLanes),
    columnTiles: Math.ceil(columns / 4 / columnLanes),
  };
};

/** Returns the number of workgroups per part of the pixels. */
export const stripWeightGroups = (geometry: Geometry): number => {
  const { groups, chunks, columnTiles } = sizesOf(geometry);
  return groups * chunks * columnTiles;
};

/**
 * Computes the gradient of a weight with few rows (taps · channels). Each invocation keeps some rows of four columns in
 * registers and iterates with a stride over the pixels of its part. The workgroup adds up its sums, and a second pass
 * adds the results of all parts. In a depthwise convolution, a row is a tap, and each column reads its own channel.
 *
 * Flops: 2 · rows · outChannels · pixels. Loads per pixel: a vector of the cotangent and `rowsEach` values.
 */
export const stripWeightPass = (geometry: Geometry, { splits, operands, result }: WeightStripOptions): Pass => {
  const { channels, outChannels } = geometry;
  const { depthwise, groups, rows, columns, inner, chunks, rowsEach, columnLanes, pixelLanes, columnTiles } =
    sizesOf(geometry);
  const multiplier = outChannels / channels;
  const imagesVectored = depthwise && multiplier === 1 && isVectored(channels);
  const pixels = pixelsOf(geometry);
  const splitLength = Math.ceil(pixels / splits);
  const value = (row: number): string => {
    const at = `u32(pixel) * ${channels}u`;
    if (imagesVectored) return `vec4<f32>(images[(${at} + min(column, ${channels - 4}u)) / 4u])`;
    if (depthwise)
      return `vec4<f32>(${range(4)
        .map((i) => `f32(images[${at} + min(column + ${i}u, ${outChannels - 1}u) / ${multiplier}u])`)
        .join(", ")})`;
    return `f32(images[${at} + channels * ${inner}u + q_${row}])`;
  };
  const code = wgsl`
    ${cornerFunctions(geometry)}
    ${cotangentFunction(columns, groups)}
    ${putWeightFunction({ rows, columns, groups, result })}
    var<workgroup> shares: array<vec4<f32>, ${rowsEach * columnLanes * pixelLanes}>;
    fn main(group: u32, lane: u32) {
      var rest = group;
      let first_column = (rest % ${columnTiles}u) * ${4 * columnLanes}u;
      rest = rest / ${columnTiles}u;
      let first_row = (rest % ${chunks}u) * ${rowsEach}u;
      rest = rest / ${chunks}u;
      let channels = rest % ${groups}u;
      let split = rest / ${groups}u;
      let column = first_column + (lane % ${columnLanes}u) * 4u;
      let begin = split * sizes.split_length;
      let end = min(sizes.pixels, begin + sizes.split_length);
      ${range(rowsEach).map(
        (row) => wgsl`
          var sum_${row} = vec4<f32>();
          let shift_${row} = shift_of(min(first_row + ${row}u, ${rows - 1}u) / ${inner}u);
          ${depthwise ? "" : `let q_${row} = min(first_row + ${row}u, ${rows - 1}u) % ${inner}u;`}
        `,
      )}
      for (var p = begin + lane / ${columnLanes}u; p < end; p += ${pixelLanes}u) {
        if (lane >= ${columnLanes * pixelLanes}u) { break; }
        let corner = corner_of(p);
        let g = cotangent_at(p, column, channels);
        ${range(rowsEach).map(
          (row) => wgsl`
            {
              let pixel = image_pixel(corner, shift_${row});
              if (pixel >= 0) { sum_${row} += ${value(row)} * g; }
            }
          `,
        )}
      }
      if (lane < ${columnLanes * pixelLanes}u) {
        ${range(rowsEach).map((row) => `shares[${row * columnLanes * pixelLanes}u + lane] = sum_${row};`)}
      }
      workgroupBarrier();
      shift = split * ${weightLength(geometry)}u;
      for (var at = lane; at < ${opaqueBound(rowsEach * columnLanes)}; at += ${workgroupSize}u) {
        let row = at / ${columnLanes}u;
        var sum = vec4<f32>();
        for (var sharer = 0u; sharer < ${opaqueBound(pixelLanes)}; sharer++) { sum += shares[(row * ${pixelLanes}u + sharer) * ${columnLanes}u + at % ${columnLanes}u]; }
        put_weight(first_row + row, first_column + (at % ${columnLanes}u) * 4u, channels, sum);
      }
    }
  `;
  return {
    label: `convolution weight strip ${rowsEach}${depthwise ? ", depthwise" : ""}, ${splits} parts`,
    bindings: weightBindings({ images: imagesVectored, columns: isVectored(columns) }, splits, operands, result),
    workgroupSize,
    groups: columnTiles * chunks * groups * splits,
    code,
    ...(operands === "f16" || result === "f16" ? { features: ["f16"] as const } : {}),
    sizes: { pixels, split_length: splitLength, zero: 0 },
  };
};

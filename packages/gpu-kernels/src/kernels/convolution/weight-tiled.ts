import type { Pass } from "../../kernel.ts";
import { isVectored } from "./gather-wgsl.ts";
import type { Geometry } from "./geometry.ts";
import { declareSums, eachSum, multiplyTiles, share, type TiledOptions, tileThreads } from "./tiled.ts";
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

/**
 * Computes the gradient of a weight as a product over pixels, `[taps · q, pixels] · [pixels, columns]`. The product has
 * few rows and columns and long sums, so the pixels are split between workgroups, and a second pass adds their partial
 * results.
 *
 * Flops: 2 · taps · inner · outChannels · pixels. Bytes in addition to the operands: splits · weight, written and read.
 */
export const tiledWeightPass = (geometry: Geometry, { tile, splits, operands, result }: TiledOptions): Pass => {
  const { channels, outChannels, groups } = geometry;
  const { rows, inner, columns } = weightSizes(geometry);
  const threads = tileThreads(tile);
  const [rowVectors, columnVectors] = [tile.rows / 4, tile.columns / 4];
  const [rowTiles, columnTiles] = [Math.ceil(rows / tile.rows), Math.ceil(columns / tile.columns)];
  const pixels = pixelsOf(geometry);
  const splitLength = Math.ceil(pixels / splits / tile.inner) * tile.inner;
  const vectored = isVectored(inner);

  const rowOf = (piece: string): string => `first_row + (${piece} % ${rowVectors}u) * 4u`;
  const loads = share(
    rowVectors * tile.inner,
    threads,
    (piece, i) => wgsl`
      {
        let p = p0 + ${piece} / ${rowVectors}u;
        tile_a[${piece}] = image_at(p, ${vectored ? `shift_${i}, q_${i}` : rowOf(piece)}, end, channel);
      }
    `,
  );
  const hoisted = vectored
    ? Array.from({ length: Math.ceil((rowVectors * tile.inner) / threads) }, (_, i) => {
        const row = rowOf(`(lane + ${i * threads}u)`);
        return `let shift_${i} = shift_of((${row}) / ${inner}u); let q_${i} = select(-1, i32((${row}) % ${inner}u), ${row} < ${rows}u);`;
      }).join("\n")
    : "";
  const imageFunction = vectored
    ? wgsl`
      fn image_at(p: u32, shift: vec2<i32>, q: i32, end: u32, channel: u32) -> vec4<f32> {
        let pixel = image_pixel(corner_of(p), shift);
        if (p >= end || pixel < 0 || q < 0) { return vec4<f32>(); }
        return vec4<f32>(images[(u32(pixel) * ${channels}u + channel + u32(q)) / 4u]);
      }
    `
    : wgsl`
      fn image_one(corner: vec3<i32>, row: u32, channel: u32) -> f32 {
        let pixel = image_pixel(corner, shift_of(row / ${inner}u));
        if (pixel < 0 || row >= ${rows}u) { return 0.0; }
        return f32(images[u32(pixel) * ${channels}u + channel + row % ${inner}u]);
      }
      fn image_at(p: u32, row: u32, end: u32, channel: u32) -> vec4<f32> {
        if (p >= end) { return vec4<f32>(); }
        let corner = corner_of(p);
        return vec4<f32>(image_one(corner, row, channel), image_one(corner, row + 1u, channel), image_one(corner, row + 2u, channel), image_one(corner, row + 3u, channel));
      }
    `;

  const code = wgsl`
    ${cornerFunctions(geometry)}
    ${imageFunction}
    ${cotangentFunction(columns, groups)}
    ${putWeightFunction({ rows, columns, groups, result })}
    var<workgroup> tile_a: array<vec4<f32>, ${tile.inner * rowVectors}>;
    var<workgroup> tile_b: array<vec4<f32>, ${tile.inner * columnVectors}>;
    fn main(group: u32, lane: u32) {
      // Neighbours read the same pixels.
      var rest = group;
      let first_column = (rest % ${columnTiles}u) * ${tile.columns}u;
      rest = rest / ${columnTiles}u;
      let first_row = (rest % ${rowTiles}u) * ${tile.rows}u;
      rest = rest / ${rowTiles}u;
      let channels = rest % ${groups}u;
      let split = rest / ${groups}u;
      let channel = channels * ${inner}u;
      let lane_x = lane % ${tile.columns / tile.columnsEach}u;
      let lane_y = lane / ${tile.columns / tile.columnsEach}u;
      let begin = split * sizes.split_length;
      let end = min(sizes.pixels, begin + sizes.split_length);
      ${hoisted}
      ${declareSums(tile)}
      for (var p0 = begin; p0 < end; p0 += ${tile.inner}u) {
        ${loads}
        ${share(
          columnVectors * tile.inner,
          threads,
          (piece) => wgsl`
            {
              let p = p0 + ${piece} / ${columnVectors}u;
              var value = vec4<f32>();
              if (p < end) { value = cotangent_at(p, first_column + (${piece} % ${columnVectors}u) * 4u, channels); }
              tile_b[${piece}] = value;
            }
          `,
        )}
        workgroupBarrier();
        ${multiplyTiles(tile)}
        workgroupBarrier();
      }
      shift = split * ${weightLength(geometry)}u;
      ${eachSum(tile, (sum, row, column) => `put_weight(first_row + ${row}, first_column + ${column}, channels, ${sum});`)}
    }
  `;
  return {
    label: `convolution weight tiled ${tile.rows}x${tile.columns}, ${splits} parts`,
    bindings: weightBindings({ images: vectored, columns: isVectored(outChannels / groups) }, splits, operands, result),
    workgroupSize: threads,
    groups: columnTiles * rowTiles * groups * splits,
    code,
    ...(operands === "f16" || result === "f16" ? { features: ["f16"] as const } : {}),
    sizes: { pixels, split_length: splitLength },
  };
};

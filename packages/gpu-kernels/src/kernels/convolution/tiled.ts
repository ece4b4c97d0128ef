import type { Pass } from "../../kernel.ts";
import { type Gather, innerLength, phasesOf, rowsOf } from "./gather.ts";
import {
  channelsType,
  isVectored,
  pixelFunctions,
  positionFunctions,
  putFunction,
  sourceFunction,
  type Stored,
  weightFunction,
} from "./gather-wgsl.ts";
import { wgsl } from "../../wgsl.ts";

/**
 * A tile of the result, computed by one workgroup. Each invocation keeps `rowsEach × columnsEach` sums in registers.
 * All sizes are multiples of 4.
 */
export interface Tile {
  readonly rows: number;
  readonly columns: number;
  /** Number of terms of the sum that are in workgroup memory at a time. */
  readonly inner: number;
  readonly rowsEach: number;
  readonly columnsEach: number;
}

export const tileThreads = ({ rows, columns, rowsEach, columnsEach }: Tile): number =>
  (rows / rowsEach) * (columns / columnsEach);

const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);

/**
 * Returns WGSL that distributes `count` work items over `threads` invocations. `lane` is the invocation. `body`
 * receives the WGSL index of a work item.
 */
export const share = (count: number, threads: number, body: (piece: string, i: number) => string): string[] =>
  range(Math.ceil(count / threads)).map((i) => {
    const text = body(i === 0 ? "lane" : `(lane + ${i * threads}u)`, i);
    return (i + 1) * threads <= count
      ? text
      : wgsl`
        if (lane + ${i * threads}u < ${count}u) {
          ${text}
        }
      `;
  });

/**
 * Returns WGSL that stores four vectors `v0 … v3` as the columns of a block: `tile[(first + j) · stride + at] = (v0[j],
 * v1[j], v2[j], v3[j])`.
 */
export const storeTransposed = (tile: string, first: string, stride: number, at: string): string[] =>
  range(4).map(
    (j) => `${tile}[(${first} + ${j}u) * ${stride}u + ${at}] = vec4<f32>(v0[${j}], v1[${j}], v2[${j}], v3[${j}]);`,
  );

/**
 * Returns WGSL that adds rows of `tile_a` times columns of `tile_b`, over the inner elements in workgroup memory, to
 * the accumulators `sum_<row>_<column vector>`.
 */
export const multiplyTiles = ({ rows, columns, inner, rowsEach, columnsEach }: Tile): string => {
  const [lanesDown, lanesAcross] = [rows / rowsEach, columns / columnsEach];
  const [down, across] = [range(rowsEach / 4), range(columnsEach / 4)];
  return wgsl`
    for (var k = 0u; k < ${inner}u; k++) {
      ${down.map((i) => `let a${i} = tile_a[k * ${rows / 4}u + lane_y + ${i * lanesDown}u];`)}
      ${across.map((j) => `let b${j} = tile_b[k * ${columns / 4}u + lane_x + ${j * lanesAcross}u];`)}
      ${range(rowsEach).flatMap((row) => across.map((j) => `sum_${row}_${j} += a${row >> 2}[${row & 3}] * b${j};`))}
    }
  `;
};

export const declareSums = ({ rowsEach, columnsEach }: Tile): string[] =>
  range(rowsEach).flatMap((row) => range(columnsEach / 4).map((j) => `var sum_${row}_${j} = vec4<f32>();`));

/**
 * Returns WGSL for each sum of an invocation. `body` receives the sum's row and first column within the tile, as WGSL.
 */
export const eachSum = (
  { rows, columns, rowsEach, columnsEach }: Tile,
  body: (sum: string, row: string, column: string) => string,
): string[] =>
  range(rowsEach).flatMap((row) =>
    range(columnsEach / 4).map((j) =>
      body(
        `sum_${row}_${j}`,
        `(lane_y + ${(row >> 2) * (rows / rowsEach)}u) * 4u + ${row & 3}u`,
        `(lane_x + ${j * (columns / columnsEach)}u) * 4u`,
      ),
    ),
  );

export interface TiledOptions {
  readonly tile: Tile;
  /**
   * Number of parts into which each sum is split. Different workgroups compute the parts. The results of the parts are
   * stored consecutively, and a second pass adds them.
   */
  readonly splits: number;
  readonly operands: Stored;
  readonly result: Stored;
}

/**
 * Granularity of part lengths, as a number of terms. The granularity is a multiple of every tile's inner size, so that
 * the split of a sum does not depend on the tile.
 */
const splitStep = 32;

/**
 * Computes a gather as a matrix product, `[pixels, taps · q] · [taps · q, columns]`, without storing the first matrix
 * (implicit GEMM): each workgroup gathers blocks of the first matrix into workgroup memory, and loads blocks of the
 * weight.
 *
 * Flops: 2 · pixels · taps · inner · columns. Each element of the source is loaded taps · ⌈columns / tile.columns⌉
 * times, mostly from cache. Source: Chetlur et al. 2014, arXiv 1410.0759 (implicit GEMM); Nath et al. 2010 (register
 * tiles).
 */
export const tiledPass = (gather: Gather, { tile, splits, operands, result }: TiledOptions): Pass => {
  const { inner, columns, groups, transposed } = gather;
  const threads = tileThreads(tile);
  const [rowVectors, columnVectors, steps] = [tile.rows / 4, tile.columns / 4, tile.inner / 4];
  const columnTiles = Math.ceil(columns / tile.columns);
  const phases = phasesOf(gather);
  const splitLength = Math.ceil(innerLength(gather) / splits / splitStep) * splitStep;
  const rows = rowsOf(gather);
  const rowTiles = Math.ceil(rows / tile.rows);

  const loadRows = share(
    rowVectors * steps,
    threads,
    (piece, i) => wgsl`
      {
        let k = k0 + (${piece} % ${steps}u) * 4u;
        let v0 = source_at(at_${i}_0, k, end, phase, channel);
        let v1 = source_at(at_${i}_1, k, end, phase, channel);
        let v2 = source_at(at_${i}_2, k, end, phase, channel);
        let v3 = source_at(at_${i}_3, k, end, phase, channel);
        ${storeTransposed("tile_a", `(${piece} % ${steps}u) * 4u`, rowVectors, `${piece} / ${steps}u`)}
      }
    `,
  );
  const loadColumns = transposed
    ? share(
        columnVectors * steps,
        threads,
        (piece) => wgsl`
          {
            let k = k0 + (${piece} % ${steps}u) * 4u;
            let column = first_column + (${piece} / ${steps}u) * 4u;
            let v0 = weight_run(k, end, column, phase, channels);
            let v1 = weight_run(k, end, column + 1u, phase, channels);
            let v2 = weight_run(k, end, column + 2u, phase, channels);
            let v3 = weight_run(k, end, column + 3u, phase, channels);
            ${storeTransposed("tile_b", `(${piece} % ${steps}u) * 4u`, columnVectors, `${piece} / ${steps}u`)}
          }
        `,
      )
    : share(
        columnVectors * tile.inner,
        threads,
        (piece) =>
          `tile_b[${piece}] = weight_row(k0 + ${piece} / ${columnVectors}u, end, first_column + (${piece} % ${columnVectors}u) * 4u, channels);`,
      );

  const declarePositions = range(Math.ceil((rowVectors * steps) / threads)).flatMap((i) =>
    range(4).map((e) => `var at_${i}_${e}: vec3<i32>;`),
  );
  const findPositions = share(rowVectors * steps, threads, (piece, i) =>
    range(4)
      .map((e) => `at_${i}_${e} = position_of(first_row + (${piece} / ${steps}u) * 4u + ${e}u, phase);`)
      .join("\n"),
  );
  const code = wgsl`
    ${positionFunctions(gather)}
    ${pixelFunctions(gather)}
    ${sourceFunction(gather)}
    ${weightFunction(gather)}
    var<private> shift: u32;
    ${putFunction(gather, result, "shift + ")}
    var<workgroup> tile_a: array<vec4<f32>, ${tile.inner * rowVectors}>;
    var<workgroup> tile_b: array<vec4<f32>, ${tile.inner * columnVectors}>;
    fn main(group: u32, lane: u32) {
      // Neighbours read the same pixels.
      var rest = group;
      let first_column = (rest % ${columnTiles}u) * ${tile.columns}u;
      rest = rest / ${columnTiles}u;
      let channels = rest % ${groups}u;
      rest = rest / ${groups}u;
      let split = rest % ${splits}u;
      rest = rest / ${splits}u;
      let phase = phase_of(rest % ${phases}u);
      let first_row = (rest / ${phases}u) * ${tile.rows}u;
      let channel = channels * ${inner}u;
      let lane_x = lane % ${tile.columns / tile.columnsEach}u;
      let lane_y = lane / ${tile.columns / tile.columnsEach}u;
      let length = phase.taps.x * phase.taps.y * ${inner}u;
      let begin = split * ${splitLength}u;
      let end = min(length, begin + ${splitLength}u);
      ${declarePositions}
      ${findPositions}
      ${declareSums(tile)}
      for (var k0 = begin; k0 < end; k0 += ${tile.inner}u) {
        ${loadRows}
        ${loadColumns}
        workgroupBarrier();
        ${multiplyTiles(tile)}
        workgroupBarrier();
      }
      shift = split * sizes.length;
      ${eachSum(tile, (sum, row, column) => `put(target_of(first_row + ${row}, phase), first_column + ${column}, channels, ${sum});`)}
    }
  `;
  return {
    label: `convolution tiled ${tile.rows}x${tile.columns}`,
    bindings: [
      { name: "source", type: channelsType(operands, isVectored(inner)), source: { input: 0 }, access: "read" },
      {
        name: "weight",
        type: channelsType(operands, isVectored(transposed ? inner : columns)),
        source: { input: 1 },
        access: "read",
      },
      {
        name: "result",
        type: channelsType(result, isVectored(columns)),
        source: splits > 1 ? { scratch: 0 } : { output: 0 },
        access: "write",
      },
    ],
    workgroupSize: threads,
    groups: columnTiles * groups * splits * phases * rowTiles,
    code,
    ...(operands === "f16" || result === "f16" ? { features: ["f16"] as const } : {}),
    sizes: {
      rows,
      length: Math.ceil((gather.batch * gather.vertical.target * gather.horizontal.target * groups * columns) / 4) * 4,
    },
  };
};

import type { DeviceFacts, Pass } from "../../kernel.ts";
import { type Placement, plainPlacement } from "./placement.ts";
import { matrixSizes, type Operand, operandOf, sinkOf } from "./operands.ts";
import { featuresOf, layoutOf, type MatmulVariant, type Product, range } from "./product.ts";
import { type Splits, splitPlan, whole } from "./split-inner.ts";
import { splitsOf } from "./sum-order.ts";
import { wgsl } from "../../wgsl.ts";

/**
 * Number of elements per workgroup, `rows × columns`, and per invocation, `perRows × perColumns`. All are multiples of
 * 4.
 */
export interface TileShape {
  readonly rows: number;
  readonly columns: number;
  readonly perRows: number;
  readonly perColumns: number;
}

/** Number of inner elements in workgroup memory at a time: 64 bytes of each row, 16 KiB in total for 128 × 128. */
const depth = 16;

/**
 * Number of tile rows that consecutive workgroups process before the next tile column, so that both operands stay in
 * the L2 cache.
 */
const panelHeight = 8;

export const tileName = ({ rows, columns, perRows, perColumns }: TileShape): string =>
  `${rows}x${columns}-${perRows}x${perColumns}`;

const lanesOf = ({ rows, columns, perRows, perColumns }: TileShape): number =>
  (rows / perRows) * (columns / perColumns);

const workgroupBytes = ({ rows, columns }: TileShape): number => 4 * depth * (rows + columns);

export const tilesOf = ({ batch, rows, columns }: Product, tile: TileShape): number =>
  batch * Math.ceil(rows / tile.rows) * Math.ceil(columns / tile.columns);

/**
 * Computes a product by tiles in workgroup memory and in registers. Per inner element, an invocation reads perRows +
 * perColumns floats from workgroup memory for 2 · perRows · perColumns flops (8 × 8: 2 flops per byte). Global memory
 * is read once per tile, rows + columns floats for 2 · rows · columns flops.
 *
 * - In both tiles, the inner dimension is the outermost, so the inner loop is the same for NN, NT, TN and TT. An
 *   operand with a contiguous inner dimension is transposed while it is loaded, in blocks of 4 × 4 in registers.
 * - 32 adjacent invocations read 4 vectors from one tile and 8 from the other: complete 128-byte lines of banks, the
 *   rest broadcasts.
 * - Columns of a transposed tile are permuted by an exclusive or with the block's number. Therefore eight invocations
 *   that write blocks in one row access eight groups of banks.
 * - The next tiles are loaded from global memory into registers while the current tiles are multiplied.
 * - Edges add no cost to the inner loop: after the end, the last row or column is repeated. Only an inner dimension
 *   that is not a multiple of 16 needs a check, once per fetched vector, that is, per 2 · perRows · perColumns flops or
 *   more.
 */
export const registerTiledPass = (
  product: Product,
  tile: TileShape,
  splits: Splits,
  placement: Placement = plainPlacement(product, splits),
): Pass => {
  const { batch, columns } = product;
  const { perRows, perColumns } = tile;
  const partial = splits.count > 1;
  const [a, b, y] = [operandOf(product, "a"), operandOf(product, "b"), sinkOf(product, partial)];
  const [lanesM, lanesN] = [tile.rows / perRows, tile.columns / perColumns];
  const lanes = lanesOf(tile);
  const [tilesM, tilesN] = [placement.tilesM(tile.rows), Math.ceil(columns / tile.columns)];
  const noTail = placement.inSteps(depth);
  const [vectorsM, vectorsN] = [tile.rows / 4, tile.columns / 4];
  const [partsM, partsN] = [range(perRows / 4), range(perColumns / 4)];

  // 4 × 4 blocks, first the blocks of a and then the blocks of b, are assigned to the invocations in rounds.
  const blocks = depth / 4;
  const [blocksA, blocksB] = [vectorsM * blocks, vectorsN * blocks];
  const rounds = range(Math.ceil((blocksA + blocksB) / lanes));
  const locateBlock = (
    { innerContiguous }: Operand,
    vectors: number,
    block: string,
  ): readonly [vector: string, depthBlock: string] =>
    innerContiguous
      ? [`(${block} / ${blocks}u)`, `(${block} % ${blocks}u)`]
      : [`(${block} % ${vectors}u)`, `(${block} / ${vectors}u)`];
  const swizzled = ({ innerContiguous }: Operand, vector: string, block: string): string =>
    innerContiguous ? `(${vector} ^ (${block} * 2u))` : vector;

  /**
   * Returns WGSL for one round of moving blocks, in which each invocation moves one block of a or b. `work` returns the
   * WGSL for a block, given as a WGSL index.
   */
  const perBlock = (round: number, work: (side: "a" | "b", block: string) => string): string => {
    const at = `lane${round === 0 ? "" : ` + ${round * lanes}u`}`;
    const [first, last] = [round * lanes, (round + 1) * lanes];
    const [forA, forB] = [work("a", `(${at})`), work("b", `(${at} - ${blocksA}u)`)];
    if (last <= blocksA) return forA;
    const isThere = last <= blocksA + blocksB ? "" : `if (${at} < ${blocksA + blocksB}u) `;
    const guardedB = wgsl`
      ${isThere}{
        ${forB}
      }
    `;
    if (first >= blocksA) return guardedB;
    return wgsl`
      if (${at} < ${blocksA}u) {
        ${forA}
      } else ${guardedB}
    `;
  };
  const sideOf = (side: "a" | "b") =>
    side === "a"
      ? ({ operand: a, vectors: vectorsM, origin: "m0" } as const)
      : ({ operand: b, vectors: vectorsN, origin: "n0" } as const);
  const fetchNext = rounds.map((round) =>
    perBlock(round, (side, block) => {
      const { operand, vectors, origin } = sideOf(side);
      const [vector, depthBlock] = locateBlock(operand, vectors, block);
      const from = `base_${side}, ${origin} + 4u * ${vector}, k + 4u * ${depthBlock}`;
      return `next_${round} = ${noTail ? `fetch_${side}(${from})` : `fetch_${side}_tail(${from}, k_end)`};`;
    }),
  );
  const putIntoTiles = rounds.map((round) => {
    const put = perBlock(round, (side, block) => {
      const { operand, vectors } = sideOf(side);
      const [vector, depthBlock] = locateBlock(operand, vectors, block);
      return wgsl`
        let at = 4u * ${depthBlock} * ${vectors}u + ${swizzled(operand, vector, depthBlock)};
        ${range(4).map((j) => `tile_${side}[at + ${j * vectors}u] = next_${round}[${j}];`)}
      `;
    });
    return wgsl`
      {
        ${put}
      }
    `;
  });

  const columnsOfA = partsM.map((p) => `let a${p} = tile_a[(4u * block + j) * ${vectorsM}u + from_a${p}];`);
  const rowsOfB = partsN.map((q) => `let b${q} = tile_b[(4u * block + j) * ${vectorsN}u + from_b${q}];`);
  const addProducts = range(perRows).flatMap((i) =>
    partsN.map((q) => `sum_${i}_${q} = fma(vec4<f32>(a${i >> 2}[${i & 3}]), b${q}, sum_${i}_${q});`),
  );
  const addressesA = partsM.map((p) => `let from_a${p} = ${swizzled(a, `(lane_m + ${p * lanesM}u)`, "block")};`);
  const addressesB = partsN.map((q) => `let from_b${q} = ${swizzled(b, `(lane_n + ${q * lanesN}u)`, "block")};`);
  const next = rounds.map((round) => `var next_${round} = mat4x4<f32>();`);
  const sums = range(perRows).flatMap((i) => partsN.map((q) => `var sum_${i}_${q} = vec4<f32>();`));
  const stores = range(perRows).map(
    (i) => wgsl`
      {
        let row = m0 + 4u * (lane_m + ${(i >> 2) * lanesM}u) + ${i & 3}u;
        if (row < row_end) {
          let row_at = (layer * sizes.rows + row) * sizes.columns;
          ${partsN.map((q) => `store_y(row_at, n0 + 4u * (lane_n + ${q * lanesN}u), sum_${i}_${q});`)}
        }
      }
    `,
  );
  return {
    label: `${placement.label} ${layoutOf(product)} register ${tileName(tile)}${partial ? `, ${splits.count} splits` : ""}`,
    bindings: [a.binding, b.binding, ...placement.bindings, y.binding],
    workgroupSize: lanes,
    groups: placement.layers * tilesM * tilesN,
    sizes: {
      ...matrixSizes(product),
      tiles_m: tilesM,
      tiles_n: tilesN,
      batch,
      split_length: splits.length,
      ...placement.sizes,
    },
    ...featuresOf(product),
    code: wgsl`
      var<workgroup> tile_a: array<vec4<f32>, ${depth * vectorsM}>;
      var<workgroup> tile_b: array<vec4<f32>, ${depth * vectorsN}>;
      ${a.code}
      ${b.code}
      ${y.code}
      ${placement.declarations}
      fn main(group: u32, lane: u32) {
        let tiles = sizes.tiles_m * sizes.tiles_n;
        let layer = group / tiles;
        let in_layer = group - layer * tiles;
        let panel = in_layer / (${panelHeight}u * sizes.tiles_n);
        let in_panel = in_layer - panel * ${panelHeight}u * sizes.tiles_n;
        let height = min(sizes.tiles_m - panel * ${panelHeight}u, ${panelHeight}u);
        let tile_m = panel * ${panelHeight}u + in_panel % height;
        let n0 = in_panel / height * ${tile.columns}u;
        ${placement.define(tile.rows, true)}
        let lane_n = lane % 8u + 8u * (lane / 32u % ${lanesN / 8}u);
        let lane_m = lane / 8u % 4u + 4u * (lane / ${4 * lanesN}u);
        ${sums}
        ${next}
        // Each round fetches the next tiles while it multiplies the present ones; the first has none to multiply, the
        // last none to fetch.
        for (var k = k_begin; k < k_end + ${depth}u; k += ${depth}u) {
          if (k < k_end) {
            ${fetchNext}
          }
          if (k > k_begin) {
            for (var block = 0u; block < ${blocks}u; block++) {
              ${addressesA}
              ${addressesB}
              // Compilers unroll it; written out it makes them slow.
              for (var j = 0u; j < 4u; j++) {
                ${columnsOfA}
                ${rowsOfB}
                ${addProducts}
              }
            }
          }
          workgroupBarrier();
          if (k < k_end) {
            ${putIntoTiles}
          }
          workgroupBarrier();
        }
        ${stores}
      }
    `,
  };
};

export const fitsDevice = (tile: TileShape, { maxWorkgroupSize, maxWorkgroupBytes }: DeviceFacts): boolean =>
  lanesOf(tile) <= maxWorkgroupSize && workgroupBytes(tile) <= maxWorkgroupBytes;

export const tileShapes: readonly TileShape[] = [
  { rows: 32, columns: 32, perRows: 4, perColumns: 4 },
  { rows: 64, columns: 64, perRows: 4, perColumns: 4 },
  { rows: 64, columns: 64, perRows: 8, perColumns: 8 },
  { rows: 128, columns: 64, perRows: 8, perColumns: 8 },
  { rows: 64, columns: 128, perRows: 8, perColumns: 8 },
  { rows: 128, columns: 128, perRows: 8, perColumns: 8 },
];

export const registerTiled = (tile: TileShape): MatmulVariant => ({
  name: `register-${tileName(tile)}`,
  sums: "in order",
  supports: ({ inner }, facts) => inner > 0 && fitsDevice(tile, facts),
  plan: (product) => ({ passes: [registerTiledPass(product, tile, whole(product))] }),
});

/**
 * Returns a variant for few results with long sums, as in weight gradients: the sums are split, so that all workgroups
 * have work.
 */
export const splitRegisterTiled = (tile: TileShape): MatmulVariant => ({
  name: `split-register-${tileName(tile)}`,
  sums: "in pieces",
  supports: (product, facts) => fitsDevice(tile, facts) && splitsOf(product).count > 1,
  plan: (product) => splitPlan(product, splitsOf(product), (cut) => registerTiledPass(product, tile, cut)),
});

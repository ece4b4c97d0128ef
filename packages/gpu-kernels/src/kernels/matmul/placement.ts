import type { Binding } from "../../kernel.ts";
import type { Product } from "./product.ts";
import type { Splits } from "./split-inner.ts";
import { wgsl } from "../../wgsl.ts";

/** Assignment of matrix tiles to the workgroups or invocations of a pass, as WGSL. */
export interface Placement {
  readonly label: string;
  readonly bindings: readonly Binding[];
  /** WGSL declarations outside of functions. */
  readonly declarations: string;
  /** Fields of `sizes` that the placement needs in addition to the fields of the product. */
  readonly sizes: { readonly [name: string]: number };
  readonly layers: number;
  /** Returns the number of tiles of `tileRows` rows that cover a layer. */
  readonly tilesM: (tileRows: number) => number;
  /** Whether all sums start at a multiple of `step` and have a multiple of `step` terms. */
  readonly inSteps: (step: number) => boolean;
  /**
   * Returns WGSL that defines, from `tile_m` and `layer`: `m0`, the first row of the tile, and `row_end`; `base_a` and
   * `base_b`, the starts of its matrices; and `k_begin` and `k_end`, the range of its sum. For a tile without rows, the
   * WGSL returns from `main`. With `shared`, all invocations of a workgroup have the same tile, and all definitions are
   * uniform.
   */
  readonly define: (tileRows: number, shared: boolean) => string;
}

/**
 * Returns the placement of a plain product. Each layer is one product of the batch, or one piece of a product if the
 * inner dimension is split.
 */
export const plainPlacement = ({ batch, rows, inner }: Product, splits: Splits): Placement => {
  const partial = splits.count > 1;
  return {
    label: "matmul",
    bindings: [],
    declarations: "",
    sizes: {},
    layers: splits.count * batch,
    tilesM: (tileRows) => Math.ceil(rows / tileRows),
    inSteps: (step) => inner % step === 0,
    define: (tileRows, shared) => wgsl`
      let m0 = tile_m * ${tileRows}u;
      let row_end = sizes.rows;
      ${shared ? "" : "if (m0 >= row_end) { return; }"}
      let matrix = ${partial ? "layer % sizes.batch" : "layer"};
      let base_a = matrix * sizes.rows * sizes.inner;
      let base_b = matrix * sizes.inner * sizes.columns;
      let k_begin = ${partial ? "layer / sizes.batch * sizes.split_length" : "0u"};
      let k_end = ${partial ? "min(k_begin + sizes.split_length, sizes.inner)" : "sizes.inner"};
    `,
  };
};

const counts: Binding = { name: "counts", type: "array<i32>", source: { input: 2 }, access: "read" };

/**
 * Returns WGSL that declares `place`, the value of `call`. If `shared`, the value is passed through workgroup memory,
 * which makes it uniform.
 */
const found = (shared: boolean, call: string): string =>
  shared
    ? wgsl`
      if (lane == 0u) { found = ${call}; }
      let place = workgroupUniformLoad(&found);
    `
    : `let place = ${call};`;

/**
 * Returns the placement of rows by group: tiles start at the start of a group, so no tile has rows of two groups. A
 * tile finds its group from the counts; tiles after the last group have empty sums. At most one tile per group, and one
 * at the end, are partly filled, so `groups` + 1 additional workgroups are started.
 */
export const rowsOfGroups = ({ rows, inner }: Product, groups: number): Placement => ({
  label: "grouped-matmul",
  bindings: [counts],
  declarations: wgsl`
    var<workgroup> found: vec4<u32>;
    fn find_tile(tile: u32, height: u32) -> vec4<u32> {
      var left = tile;
      var begin = 0u;
      for (var g = 0u; g < sizes.groups; g++) {
        let count = u32(clamp(counts[g], 0, i32(sizes.rows - begin)));
        let tiles = (count + height - 1u) / height;
        if (left < tiles) { return vec4<u32>(g, begin + left * height, begin + count, sizes.inner); }
        left -= tiles;
        begin += count;
      }
      return vec4<u32>(0u, begin + left * height, sizes.rows, 0u);
    }
  `,
  sizes: { groups },
  layers: 1,
  tilesM: (tileRows) => Math.floor(rows / tileRows) + groups + 1,
  inSteps: (step) => inner % step === 0,
  define: (tileRows, shared) => wgsl`
    ${found(shared, `find_tile(tile_m, ${tileRows}u)`)}
    let m0 = place.y;
    let row_end = place.z;
    if (m0 >= row_end) { return; }
    let base_a = 0u;
    let base_b = place.x * sizes.inner * sizes.columns;
    let k_begin = 0u;
    let k_end = place.w;
  `,
});

/** Returns the placement of sums by group: layer g is the product over the rows of group g. */
export const sumsOfGroups = ({ rows }: Product, groups: number): Placement => ({
  label: "grouped-matmul-backward-weight",
  bindings: [counts],
  declarations: wgsl`
    var<workgroup> found: vec2<u32>;
    fn find_rows(group: u32) -> vec2<u32> {
      var begin = 0u;
      for (var g = 0u; ; g++) {
        let count = u32(clamp(counts[g], 0, i32(sizes.inner - begin)));
        if (g == group) { return vec2<u32>(begin, begin + count); }
        begin += count;
      }
    }
  `,
  sizes: {},
  layers: groups,
  tilesM: (tileRows) => Math.ceil(rows / tileRows),
  inSteps: () => false,
  define: (tileRows, shared) => wgsl`
    ${found(shared, "find_rows(layer)")}
    let m0 = tile_m * ${tileRows}u;
    let row_end = sizes.rows;
    ${shared ? "" : "if (m0 >= row_end) { return; }"}
    let base_a = 0u;
    let base_b = 0u;
    let k_begin = place.x;
    let k_end = place.y;
  `,
});

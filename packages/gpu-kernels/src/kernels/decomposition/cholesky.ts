import type { BindingSource, DeviceFacts, KernelPlan, Pass } from "../../kernel.ts";
import { blockRows, blockStarts, pivotFunction, substitutionLanes, triangleEntries } from "./block.ts";
import { blockProductCode, productLanes, productParts, tileSize } from "./block-product.ts";
import { substitutionCode } from "./substitution.ts";
import { wgsl } from "../../wgsl.ts";

const factor: BindingSource = { output: 0 };
const copyLanes = 256;

/** Sets l to a on and below the diagonal, and to zero above the diagonal. */
const copyPass = (batch: number, size: number): Pass => ({
  label: "cholesky copy",
  bindings: [
    { name: "a", type: "array<f32>", source: { input: 0 }, access: "read" },
    { name: "l", type: "array<f32>", source: factor, access: "write" },
  ],
  workgroupSize: copyLanes,
  groups: Math.ceil((batch * size * size) / copyLanes),
  sizes: { n: size, count: batch * size * size },
  code: wgsl`
    fn main(group: u32, lane: u32) {
      let at = group * ${copyLanes}u + lane;
      if (at >= sizes.count) { return; }
      let row = at / sizes.n;
      let column = at - row * sizes.n;
      l[at] = select(0.0, a[at], column <= row % sizes.n);
    }
  `,
});

/**
 * Factors a diagonal block: one workgroup with one invocation per row computes the columns in order.
 *
 * @param whole Whether the block is the complete matrix. If so, the block is read from `a`, and zeros are written above
 * its diagonal.
 */
const diagonalPass = (batch: number, size: number, first: number, whole: boolean): Pass => ({
  label: whole ? "cholesky of small matrices" : "cholesky diagonal block",
  bindings: [
    ...(whole ? [{ name: "a", type: "array<f32>", source: { input: 0 }, access: "read" } as const] : []),
    { name: "l", type: "array<f32>", source: factor, access: "write" },
  ],
  workgroupSize: blockRows,
  groups: batch,
  sizes: { n: size, first },
  code: wgsl`
    ${pivotFunction}
    var<workgroup> triangle: array<f32, ${triangleEntries}>;
    fn main(group: u32, lane: u32) {
      let n = sizes.n;
      let corner = (group * n + sizes.first) * n + sizes.first;
      let rows = min(${blockRows}u, n - sizes.first);
      for (var e = lane; e < rows * ${blockRows}u; e += ${blockRows}u) {
        let i = e / ${blockRows}u;
        let k = e % ${blockRows}u;
        if (k <= i) { triangle[i * (i + 1u) / 2u + k] = ${whole ? "a" : "l"}[corner + i * n + k]; }
      }
      let own = lane * (lane + 1u) / 2u;
      for (var j = 0u; j < rows; j++) {
        workgroupBarrier();
        let other = j * (j + 1u) / 2u;
        var sum = 0.0;
        if (lane >= j && lane < rows) {
          sum = triangle[own + j];
          for (var k = 0u; k < j; k++) { sum = fma(-triangle[own + k], triangle[other + k], sum); }
          if (lane == j) { triangle[other + j] = pivot_of(sum); }
        }
        workgroupBarrier();
        if (lane > j && lane < rows) { triangle[own + j] = sum / triangle[other + j]; }
      }
      workgroupBarrier();
      for (var e = lane; e < rows * ${blockRows}u; e += ${blockRows}u) {
        let i = e / ${blockRows}u;
        let k = e % ${blockRows}u;
        if (k <= i) { l[corner + i * n + k] = triangle[i * (i + 1u) / 2u + k]; }
        ${whole ? "else if (k < rows) { l[corner + i * n + k] = 0.0; }" : ""}
      }
    }
  `,
});

/** Solves x lᵀ = a for the rows below a diagonal block, with one invocation per row. */
const panelPass = (batch: number, size: number, first: number, lanes: number): Pass => {
  const groups = Math.ceil((size - first - blockRows) / lanes);
  return {
    label: "cholesky panel",
    bindings: [{ name: "l", type: "array<f32>", source: factor, access: "write" }],
    workgroupSize: lanes,
    groups: batch * groups,
    sizes: { n: size, first, groups },
    code: wgsl`
      var<private> corner: u32;
      var<private> panel: u32;
      fn triangle_at(i: u32, k: u32) -> f32 { return l[corner + i * sizes.n + k]; }
      fn load(k: u32, t: u32) -> f32 { return l[panel + t * sizes.n + k]; }
      fn store(k: u32, t: u32, x: f32) { l[panel + t * sizes.n + k] = x; }
      ${substitutionCode({ lanes, unitDiagonal: false, alongColumns: true })}
      fn main(group: u32, lane: u32) {
        let matrix = group / sizes.groups;
        let row = sizes.first + ${blockRows}u + group % sizes.groups * ${lanes}u;
        corner = (matrix * sizes.n + sizes.first) * sizes.n + sizes.first;
        panel = (matrix * sizes.n + row) * sizes.n + sizes.first;
        substitute(lane, ${blockRows}u, min(${lanes}u, sizes.n - row));
      }
    `,
  };
};

/**
 * Updates the lower triangle of the remaining matrix, tile by tile: subtracts from each tile the product of two blocks
 * of the panel.
 */
const trailingPass = (batch: number, size: number, first: number, parts: number): Pass => {
  const tiles = Math.ceil((size - first - blockRows) / tileSize);
  const groups = (tiles * (tiles + 1)) / 2;
  return {
    label: "cholesky trailing update",
    bindings: [{ name: "l", type: "array<f32>", source: factor, access: "write" }],
    workgroupSize: productLanes(parts),
    groups: batch * groups,
    sizes: { n: size, first, groups },
    code: wgsl`
      var<private> corner: u32;
      fn panel_at(i: u32, k: u32) -> f32 {
        if (i >= sizes.n) { return 0.0; }
        return l[corner + i * sizes.n + sizes.first + k];
      }
      fn load_a(i: u32, k: u32) -> f32 { return panel_at(i, k); }
      fn load_b(j: u32, k: u32) -> f32 { return panel_at(j, k); }
      fn subtract(i: u32, j: u32, x: f32) {
        if (i < sizes.n && j <= i) { l[corner + i * sizes.n + j] -= x; }
      }
      ${blockProductCode(parts, { a: "inner", b: "inner" })}
      fn main(group: u32, lane: u32) {
        let tile = group % sizes.groups;
        // Tile (r, c) has number r(r + 1)/2 + c; the root may be off by one.
        var r = u32((sqrt(8.0 * f32(tile) + 1.0) - 1.0) * 0.5);
        if (r * (r + 1u) / 2u > tile) { r--; }
        if ((r + 1u) * (r + 2u) / 2u <= tile) { r++; }
        let c = tile - r * (r + 1u) / 2u;
        corner = group / sizes.groups * sizes.n * sizes.n;
        let begin = sizes.first + ${blockRows}u;
        subtract_product(lane, begin + ${tileSize}u * r, begin + ${tileSize}u * c);
      }
    `,
  };
};

/**
 * Returns the plan of the lower Cholesky factors of `batch` matrices [size, size]. Up to 64 rows: one pass, one
 * workgroup per matrix. More rows: three passes per block of 64 columns. Nearly all flops are in the trailing updates,
 * which read and write the remaining matrix once per block.
 */
export const choleskyPlan = (
  batch: number,
  size: number,
  facts: Pick<DeviceFacts, "software" | "maxWorkgroupBytes">,
): KernelPlan => {
  if (size <= blockRows) return { passes: [diagonalPass(batch, size, 0, true)] };
  const lanes = substitutionLanes(facts);
  return {
    passes: [
      copyPass(batch, size),
      ...blockStarts(size).flatMap((first) => [
        diagonalPass(batch, size, first, false),
        ...(first + blockRows < size
          ? [panelPass(batch, size, first, lanes), trailingPass(batch, size, first, productParts(facts))]
          : []),
      ]),
    ],
  };
};

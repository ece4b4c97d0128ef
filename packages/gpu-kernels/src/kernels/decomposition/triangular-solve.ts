import type { BindingSource, DeviceFacts, KernelPlan, Pass } from "../../kernel.ts";
import { blockRows, blockStarts, substitutionLanes } from "./block.ts";
import { blockProductCode, productLanes, productParts, tileSize } from "./block-product.ts";
import { substitutionCode } from "./substitution.ts";
import { wgsl } from "../../wgsl.ts";

export interface TriangularSystem {
  readonly batch: number;
  readonly rows: number;
  readonly columns: number;
  readonly lower: boolean;
  readonly transpose: boolean;
  readonly unitDiagonal: boolean;
}

const solution: BindingSource = { output: 0 };
const copyLanes = 256;

/** Copies b to x, in vectors. */
const copyPass = ({ batch, rows, columns }: TriangularSystem): Pass => {
  const vectors = Math.ceil((batch * rows * columns) / 4);
  return {
    label: "triangular-solve copy",
    bindings: [
      { name: "b", type: "array<vec4<f32>>", source: { input: 1 }, access: "read" },
      { name: "x", type: "array<vec4<f32>>", source: solution, access: "write" },
    ],
    workgroupSize: copyLanes,
    groups: Math.ceil(vectors / copyLanes),
    sizes: { vectors },
    code: wgsl`
      fn main(group: u32, lane: u32) {
        let at = group * ${copyLanes}u + lane;
        if (at < sizes.vectors) { x[at] = b[at]; }
      }
    `,
  };
};

/** Returns a WGSL function that returns an entry of op(l), by row and column in the complete matrix. */
const coefficientFunction = ({ transpose }: TriangularSystem): string =>
  wgsl`
    var<private> corner: u32;
    fn coefficient(i: u32, k: u32) -> f32 { return l[corner + ${transpose ? "k * sizes.n + i" : "i * sizes.n + k"}]; }
  `;

/**
 * Returns a WGSL function that converts a position in substitution order to a row. The last row comes first if op(l) is
 * upper triangular.
 */
const rowFunction = ({ lower, transpose }: TriangularSystem): string =>
  `fn row_of(i: u32) -> u32 { return ${lower === transpose ? "sizes.n - 1u - i" : "i"}; }`;

/**
 * Solves the rows of a block, one invocation per column. If `whole`, the block is the complete matrix, and the
 * right-hand sides are read from `b` instead of `x`.
 */
const blockPass = (system: TriangularSystem, first: number, lanes: number, whole: boolean): Pass => {
  const { batch, rows, columns, unitDiagonal } = system;
  const groups = Math.ceil(columns / lanes);
  return {
    label: whole ? "triangular-solve of small matrices" : "triangular-solve block",
    bindings: [
      { name: "l", type: "array<f32>", source: { input: 0 }, access: "read" },
      ...(whole ? [{ name: "b", type: "array<f32>", source: { input: 1 }, access: "read" } as const] : []),
      { name: "x", type: "array<f32>", source: solution, access: "write" },
    ],
    workgroupSize: lanes,
    groups: batch * groups,
    sizes: { n: rows, m: columns, first, groups },
    code: wgsl`
      var<private> base: u32;
      ${coefficientFunction(system)}
      ${rowFunction(system)}
      fn triangle_at(i: u32, k: u32) -> f32 { return coefficient(row_of(sizes.first + i), row_of(sizes.first + k)); }
      fn load(k: u32, t: u32) -> f32 { return ${whole ? "b" : "x"}[base + row_of(sizes.first + k) * sizes.m + t]; }
      fn store(k: u32, t: u32, value: f32) { x[base + row_of(sizes.first + k) * sizes.m + t] = value; }
      ${substitutionCode({ lanes, unitDiagonal, alongColumns: false })}
      fn main(group: u32, lane: u32) {
        let matrix = group / sizes.groups;
        let column = group % sizes.groups * ${lanes}u;
        corner = matrix * sizes.n * sizes.n;
        base = matrix * sizes.n * sizes.m + column;
        substitute(lane, min(${blockRows}u, sizes.n - sizes.first), min(${lanes}u, sizes.m - column));
      }
    `,
  };
};

/** Subtracts the products with a solved block from all unsolved rows. */
const remainingPass = (system: TriangularSystem, first: number, parts: number): Pass => {
  const { batch, rows, columns, transpose } = system;
  const down = Math.ceil((rows - first - blockRows) / tileSize);
  const across = Math.ceil(columns / tileSize);
  return {
    label: "triangular-solve remaining rows",
    bindings: [
      { name: "l", type: "array<f32>", source: { input: 0 }, access: "read" },
      { name: "x", type: "array<f32>", source: solution, access: "write" },
    ],
    workgroupSize: productLanes(parts),
    groups: batch * down * across,
    sizes: { n: rows, m: columns, first, across, groups: down * across },
    code: wgsl`
      var<private> base: u32;
      ${coefficientFunction(system)}
      ${rowFunction(system)}
      fn load_a(i: u32, k: u32) -> f32 {
        if (i >= sizes.n) { return 0.0; }
        return coefficient(row_of(i), row_of(sizes.first + k));
      }
      fn load_b(j: u32, k: u32) -> f32 {
        if (j >= sizes.m) { return 0.0; }
        return x[base + row_of(sizes.first + k) * sizes.m + j];
      }
      fn subtract(i: u32, j: u32, value: f32) {
        if (i < sizes.n && j < sizes.m) { x[base + row_of(i) * sizes.m + j] -= value; }
      }
      ${blockProductCode(parts, { a: transpose ? "outer" : "inner", b: "outer" })}
      fn main(group: u32, lane: u32) {
        let matrix = group / sizes.groups;
        let tile = group % sizes.groups;
        corner = matrix * sizes.n * sizes.n;
        base = matrix * sizes.n * sizes.m;
        let begin = sizes.first + ${blockRows}u;
        subtract_product(lane, begin + ${tileSize}u * (tile / sizes.across), ${tileSize}u * (tile % sizes.across));
      }
    `,
  };
};

/**
 * Returns the plan that solves op(l) x = b for `batch` triangular matrices. Up to 64 rows: one pass, one workgroup per
 * matrix and 64 columns. More rows: two passes per block of 64 rows, with nearly all flops in the products.
 */
export const triangularSolvePlan = (
  system: TriangularSystem,
  facts: Pick<DeviceFacts, "software" | "maxWorkgroupBytes">,
): KernelPlan => {
  const { rows } = system;
  const lanes = substitutionLanes(facts);
  if (rows <= blockRows) return { passes: [blockPass(system, 0, lanes, true)] };
  return {
    passes: [
      copyPass(system),
      ...blockStarts(rows).flatMap((first) => [
        blockPass(system, first, lanes, false),
        ...(first + blockRows < rows ? [remainingPass(system, first, productParts(facts))] : []),
      ]),
    ],
  };
};

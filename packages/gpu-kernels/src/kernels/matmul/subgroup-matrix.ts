import type { DeviceFacts, Pass, SubgroupMatrixShape } from "../../kernel.ts";
import { featuresOf, layoutOf, type MatmulVariant, type Product, range } from "./product.ts";
import { matrixSizes, operandOf } from "./operands.ts";
import { wgsl } from "../../wgsl.ts";

/**
 * Tile sizes: a workgroup of four subgroups computes 64 × 64 elements of the result, and each subgroup computes 32 × 32
 * of them. Both operands are loaded 32 inner elements at a time.
 */
const [side, perSubgroup, depth, numSubgroups] = [64, 32, 32, 4] as const;

/**
 * Row strides of the two tiles in workgroup memory, in elements. Each row has 16 bytes of padding, so that rows start
 * at different banks.
 */
const [strideK, strideN] = [depth + 8, side + 8] as const;

/**
 * Returns the matrix shape that the variant uses: the largest shape with f16 operands and f32 sums that divides the
 * tile of a subgroup. Undefined if there is no such shape.
 */
export const matrixShapeFor = ({ subgroupMatrices }: DeviceFacts): SubgroupMatrixShape | undefined =>
  subgroupMatrices
    .filter(
      ({ operands, result, rows, columns, inner }) =>
        operands === "f16" &&
        result === "f32" &&
        perSubgroup % rows === 0 &&
        perSubgroup % columns === 0 &&
        depth % inner === 0,
    )
    .sort((p, q) => q.rows * q.columns * q.inner - p.rows * p.columns * p.inner)[0];

/**
 * Computes a product on tensor cores: `subgroup_matrix_result += subgroup_matrix_left · subgroup_matrix_right`, f16
 * operands and f32 sums. Both tiles are loaded into workgroup memory in f16 (padded with zeros, in their transposed or
 * untransposed layout). Sums are written through workgroup memory in f32, and bounds-checked stores round them to the
 * result's dtype. A subgroup computes 2 · 32 · 32 · 32 flops per 4 KiB of workgroup memory.
 */
export const subgroupMatrixPass = (
  product: Product,
  { rows: M, columns: N, inner: K }: SubgroupMatrixShape,
  subgroupSize: number,
): Pass => {
  const { batch, rows, columns, resultDtype } = product;
  const lanes = numSubgroups * subgroupSize;
  const [a, b] = [operandOf(product, "a"), operandOf(product, "b")];
  const [tilesM, tilesN] = [Math.ceil(rows / side), Math.ceil(columns / side)];
  const [partsM, partsN] = [range(perSubgroup / M), range(perSubgroup / N)];
  // Number of 4 × 4 element blocks per tile, which are distributed over the invocations.
  const blocks = (side / 4) * (depth / 4);
  const blockAt = (innerContiguous: boolean): string[] =>
    innerContiguous
      ? [`let outer = at / ${depth / 4}u * 4u;`, `let inner = at % ${depth / 4}u * 4u;`]
      : [`let outer = at % ${side / 4}u * 4u;`, `let inner = at / ${side / 4}u * 4u;`];
  const fill = (name: "a" | "b", origin: string, put: (i: number, j: number) => string): string => wgsl`
    for (var at = lane; at < ${blocks}u; at += ${lanes}u) {
      ${blockAt((name === "a" ? a : b).innerContiguous)}
      var block = mat4x4<f32>();
      if (k + ${depth}u <= sizes.inner) { block = fetch_${name}(base_${name}, ${origin} + outer, k + inner); }
      else { block = fetch_${name}_tail(base_${name}, ${origin} + outer, k + inner, sizes.inner); }
      ${range(4).flatMap((j) => range(4).map((i) => `tile_${name}[${put(i, j)}] = f16(block[${j}][${i}]);`))}
    }
  `;
  const sum = (p: number, q: number): string => `sum_${p}_${q}`;
  const multiply = range(depth / K).map(
    (s) => wgsl`
      {
        ${partsM.map((p) => `let left_${p} = subgroupMatrixLoad<subgroup_matrix_left<f16, ${K}, ${M}>, row_major>(&tile_a, (own_m + ${p * M}u) * ${strideK}u + ${s * K}u, ${strideK}u);`)}
        ${partsN.map((q) => `let right_${q} = subgroupMatrixLoad<subgroup_matrix_right<f16, ${N}, ${K}>, row_major>(&tile_b, ${s * K * strideN}u + own_n + ${q * N}u, ${strideN}u);`)}
        ${partsM.flatMap((p) => partsN.map((q) => `${sum(p, q)} = subgroupMatrixMultiplyAccumulate(left_${p}, right_${q}, ${sum(p, q)});`))}
      }
    `,
  );
  // Each subgroup stores sums through its own region of workgroup memory, so only the order within the subgroup
  // matters. Barriers stay uniform.
  const out = partsM.flatMap((p) =>
    partsN.map(
      (q) => wgsl`
        subgroupMatrixStore<row_major>(&corner, own * ${M * N}u, ${sum(p, q)}, ${N}u);
        workgroupBarrier();
        for (var at = subgroup_lane; at < ${M * N}u; at += subgroup_size) {
          let m = m0 + own_m + ${p * M}u + at / ${N}u;
          let n = n0 + own_n + ${q * N}u + at % ${N}u;
          if (m < sizes.rows && n < sizes.columns) { y[(layer * sizes.rows + m) * sizes.columns + n] = ${resultDtype}(corner[own * ${M * N}u + at]); }
        }
        workgroupBarrier();
      `,
    ),
  );
  return {
    label: `matmul ${layoutOf(product)} subgroup-matrix ${M}x${N}x${K}`,
    bindings: [
      a.binding,
      b.binding,
      { name: "y", type: `array<${resultDtype}>`, source: { output: 0 }, access: "write" },
    ],
    workgroupSize: lanes,
    groups: batch * tilesM * tilesN,
    sizes: { ...matrixSizes(product), tiles_m: tilesM, tiles_n: tilesN },
    features: [...(featuresOf(product).features ?? []), "subgroups", "subgroup-matrix"],
    code: wgsl`
      var<workgroup> tile_a: array<f16, ${side * strideK}>;
      var<workgroup> tile_b: array<f16, ${depth * strideN}>;
      var<workgroup> corner: array<f32, ${numSubgroups * M * N}>;
      ${a.code}
      ${b.code}
      fn main(group: u32, lane: u32, subgroup_lane: u32, subgroup_size: u32) {
        let layer = group / (sizes.tiles_m * sizes.tiles_n);
        let m0 = (group / sizes.tiles_n) % sizes.tiles_m * ${side}u;
        let n0 = group % sizes.tiles_n * ${side}u;
        let own = lane / ${subgroupSize}u;
        let own_m = own / 2u * ${perSubgroup}u;
        let own_n = own % 2u * ${perSubgroup}u;
        let base_a = layer * sizes.rows * sizes.inner;
        let base_b = layer * sizes.inner * sizes.columns;
        ${partsM.flatMap((p) => partsN.map((q) => `var ${sum(p, q)} = subgroup_matrix_result<f32, ${N}, ${M}>();`))}
        for (var k = 0u; k < sizes.inner; k += ${depth}u) {
          ${fill("a", "m0", (i, j) => `(outer + ${i}u) * ${strideK}u + inner + ${j}u`)}
          ${fill("b", "n0", (i, j) => `(inner + ${j}u) * ${strideN}u + outer + ${i}u`)}
          workgroupBarrier();
          ${multiply}
          workgroupBarrier();
        }
        ${out}
      }
    `,
  };
};

const workgroupBytes = ({ rows, columns }: SubgroupMatrixShape): number =>
  2 * (side * strideK + depth * strideN) + 4 * numSubgroups * rows * columns;

/** Whether the device has matrix units that multiply operands of this dtype, for any number of rows. */
export const supportsMatrices = ({ inner, dtype }: Product, facts: DeviceFacts): boolean => {
  const shape = matrixShapeFor(facts);
  return (
    inner > 0 &&
    dtype === "f16" &&
    facts.f16 &&
    facts.subgroups &&
    shape !== undefined &&
    // The subgroup of an invocation is only known if all subgroups have the same size.
    facts.minSubgroupSize === facts.maxSubgroupSize &&
    numSubgroups * facts.maxSubgroupSize <= facts.maxWorkgroupSize &&
    workgroupBytes(shape) <= facts.maxWorkgroupBytes
  );
};

export const subgroupMatrix: MatmulVariant = {
  name: "subgroup-matrix-64x64",
  sums: "by matrices",
  supports: supportsMatrices,
  plan: (product, facts) => ({ passes: [subgroupMatrixPass(product, matrixShapeFor(facts)!, facts.maxSubgroupSize)] }),
};

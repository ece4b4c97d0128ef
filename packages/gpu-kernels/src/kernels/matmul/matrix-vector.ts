import type { Pass } from "../../kernel.ts";
import { featuresOf, layoutOf, type MatmulVariant, type Product, range } from "./product.ts";
import { wgsl } from "../../wgsl.ts";

const lanes = 64;

/**
 * `y[o] = Σₖ v[k] · x[k, o]`: the product of one row (x = b) or, seen from the other side, of one column (x = aᵀ).
 * Reads x once, so it is bound by memory: 2 flops per element.
 */
interface MatrixVector {
  readonly outer: number;
  readonly vector: "a" | "b";
  /** The inner dimension of x is contiguous. */
  readonly innerContiguous: boolean;
}

const matrixVectorOf = ({ rows, columns, transposeA, transposeB }: Product): MatrixVector =>
  rows === 1
    ? { outer: columns, vector: "a", innerContiguous: transposeB }
    : { outer: rows, vector: "b", innerContiguous: !transposeA };

/**
 * Σ over a group of `width` neighbouring invocations, by halves, so the order is fixed. The first of them gets the sum.
 */
const treeSum = (type: string, width: number): string => wgsl`
  var<workgroup> sums: array<${type}, ${lanes}>;
  fn tree_sum(own: ${type}, lane: u32) -> ${type} {
    sums[lane] = own;
    for (var half = ${width / 2}u; half > 0u; half = half / 2u) {
      workgroupBarrier();
      if (lane % ${width}u < half) { sums[lane] += sums[lane + half]; }
    }
    return sums[lane];
  }
`;

/**
 * Rows of x lie along the inner dimension: 16 invocations walk one row with vectors, 256 contiguous bytes at a time.
 */
const dotCode = (aligned: boolean, dtype: string, resultDtype: string): string => {
  const width = 16;
  const load = (name: string): string =>
    aligned
      ? `vec4<f32>(${name}[(${name}_at + k) >> 2u])`
      : `vec4<f32>(vec4<${dtype}>(${range(4)
          .map((i) => `${name}[${name}_at + k + ${i}u]`)
          .join(", ")}))`;
  return wgsl`
    ${treeSum("f32", width)}
    fn main(group: u32, lane: u32) {
      let o = group * ${lanes / width}u + lane / ${width}u;
      let inside = min(o, sizes.count - 1u);
      let x_at = inside * sizes.inner;
      let v_at = inside / sizes.outer * sizes.inner;
      var sum = vec4<f32>();
      var k = lane % ${width}u * 4u;
      for (; k + 4u <= sizes.inner; k += ${4 * width}u) { sum = fma(${load("v")}, ${load("x")}, sum); }
      var total = (sum.x + sum.y) + (sum.z + sum.w);
      ${aligned ? "" : `for (; k < sizes.inner; k++) { total = fma(f32(v[v_at + k]), f32(x[x_at + k]), total); }`}
      total = tree_sum(total, lane);
      if (lane % ${width}u == 0u && o < sizes.count) { y[o] = ${resultDtype}(total); }
    }
  `;
};

/**
 * Rows of x lie along the results: 8 neighbours read 32 results of one row, and 8 such groups take every eighth row.
 */
const columnsCode = (aligned: boolean, dtype: string, resultDtype: string): string => {
  const [vectors, slices] = [8, lanes / 8];
  const load = aligned
    ? "vec4<f32>(x[at >> 2u])"
    : `vec4<f32>(vec4<${dtype}>(${range(4)
        .map((i) => `x[at + ${i}u]`)
        .join(", ")}))`;
  return wgsl`
    var<workgroup> sums: array<vec4<f32>, ${lanes}>;
    fn main(group: u32, lane: u32) {
      let matrix = group / sizes.groups;
      let o = (group - matrix * sizes.groups) * ${4 * vectors}u + lane % ${vectors}u * 4u;
      let inside = min(o, sizes.outer - ${aligned ? 4 : 1}u);
      var sum = vec4<f32>();
      for (var k = lane / ${vectors}u; k < sizes.inner; k += ${slices}u) {
        let at = (matrix * sizes.inner + k) * sizes.outer + inside;
        sum = fma(vec4<f32>(f32(v[matrix * sizes.inner + k])), ${load}, sum);
      }
      sums[lane] = sum;
      for (var half = ${lanes / 2}u; half >= ${vectors}u; half = half / 2u) {
        workgroupBarrier();
        if (lane < half) { sums[lane] += sums[lane + half]; }
      }
      if (lane < ${vectors}u) {
        ${range(4).map(
          (i) =>
            `if (o + ${i}u < sizes.outer) { y[matrix * sizes.outer + o + ${i}u] = ${resultDtype}(sums[lane][${i}]); }`,
        )}
      }
    }
  `;
};

export const matrixVectorPass = (product: Product): Pass => {
  const { batch, inner, dtype, resultDtype } = product;
  const { outer, vector, innerContiguous } = matrixVectorOf(product);
  const aligned = (innerContiguous ? inner : outer) % 4 === 0;
  const groups = innerContiguous ? Math.ceil((batch * outer) / (lanes / 16)) : batch * Math.ceil(outer / 32);
  const input = { a: { input: 0 }, b: { input: 1 } } as const;
  return {
    label: `matmul ${layoutOf(product)} matrix-vector`,
    bindings: [
      {
        name: "v",
        type: `array<${aligned && innerContiguous ? `vec4<${dtype}>` : dtype}>`,
        source: input[vector],
        access: "read",
      },
      {
        name: "x",
        type: `array<${aligned ? `vec4<${dtype}>` : dtype}>`,
        source: input[vector === "a" ? "b" : "a"],
        access: "read",
      },
      { name: "y", type: `array<${resultDtype}>`, source: { output: 0 }, access: "write" },
    ],
    workgroupSize: lanes,
    groups,
    sizes: { inner, outer, count: batch * outer, groups: Math.ceil(outer / 32) },
    ...featuresOf(product),
    code: (innerContiguous ? dotCode : columnsCode)(aligned, dtype, resultDtype),
  };
};

export const matrixVector: MatmulVariant = {
  name: "matrix-vector",
  supports: ({ rows, columns, inner }) => inner > 0 && (rows === 1 || columns === 1),
  plan: (product) => ({ passes: [matrixVectorPass(product)] }),
};

import type { DeviceFacts, Pass } from "../../kernel.ts";
import { matrixSizes, operandOf } from "./operands.ts";
import { featuresOf, layoutOf, type MatmulVariant, type Product, range } from "./product.ts";
import { type Splits, splitPlan } from "./split-inner.ts";
import { splitsByRule } from "./sum-order.ts";
import { wgsl } from "../../wgsl.ts";

const lanes = 64;

/** Number of results per workgroup, and number of inner elements that are in workgroup memory at a time. */
const [width, depth] = [32, 64] as const;

/**
 * Distance in elements between rows of the tile in workgroup memory. One more than the row length, so that writes along
 * the inner dimension use all banks.
 */
const stride = width + 1;

/** Maximum number of rows for the variant `few-rows`. */
const maxRows = 8;

/**
 * Form of a product with few vectors, `y[r, o] = Σₖ v[r, k] · x[k, o]` for few r: a product with few rows (x = b) or,
 * transposed, with one column (x = aᵀ).
 */
interface VectorProduct {
  /** Operand that is the matrix x. */
  readonly side: "a" | "b";
  /** Number of vectors v in the product. */
  readonly count: number;
  /** Number of results per vector. */
  readonly outer: number;
  /** Returns the WGSL index of element k of vector r. The matrix of vectors starts at `base_v`. */
  readonly vectorAt: (r: string, k: string) => string;
}

const vectorProductOf = ({ rows, columns, inner, transposeA }: Product): VectorProduct =>
  columns === 1 && rows > 1
    ? { side: "a", count: 1, outer: rows, vectorAt: (_, k) => `base_v + ${k}` }
    : {
        side: "b",
        count: rows,
        outer: columns,
        vectorAt: (r, k) => (transposeA ? `base_v + ${k} * ${rows}u + ${r}` : `base_v + ${r} * ${inner}u + ${k}`),
      };

/**
 * Returns WGSL that declares the position of a workgroup: `layer`; `o0`, its first result; `base_x` and `base_v`, the
 * starts of its operands; and `k_begin` and `k_end`, the range of its sums.
 */
const positionText = ({ inner }: Product, { count, outer }: VectorProduct, resultsOfGroup: number): string => wgsl`
  let layer = group / sizes.groups;
  let o0 = (group - layer * sizes.groups) * ${resultsOfGroup}u;
  let matrix = layer % sizes.batch;
  let base_x = matrix * ${outer * inner}u;
  let base_v = matrix * ${count * inner}u;
  let k_begin = layer / sizes.batch * sizes.split_length;
  let k_end = min(k_begin + sizes.split_length, sizes.inner);
`;

/**
 * Returns WGSL that loads both operands into workgroup memory. All invocations load, and each half of the invocations
 * sums half of the results.
 */
const stagedCode = (product: Product, vectors: VectorProduct, element: string): string => {
  const { side, count, outer, vectorAt } = vectors;
  const { innerContiguous, code } = operandOf(product, side);
  const [blocksOuter, blocksInner] = [width / 4, depth / 4];
  const rounds = range((blocksOuter * blocksInner) / lanes);
  // Adjacent invocations must read adjacent memory.
  const blocksOf = (round: number): readonly [outerBlock: string, innerBlock: string] => {
    const block = `(lane + ${round * lanes}u)`;
    return innerContiguous
      ? [`${block} / ${blocksInner}u`, `${block} % ${blocksInner}u`]
      : [`${block} % ${blocksOuter}u`, `${block} / ${blocksOuter}u`];
  };
  const halves = Math.min(2, count);
  const own = range(Math.ceil(count / halves));
  const rowOf = (i: number): string => (halves === 1 ? `${i}u` : `(${halves * i}u + lane / ${width}u)`);
  const vector = (r: number): string =>
    `select(0.0, f32(v[min(${vectorAt(`${r}u`, "(k + lane)")}, last_v)]), k + lane < k_end)`;
  return wgsl`
    ${code}
    var<workgroup> tile: array<f32, ${depth * stride}>;
    var<workgroup> staged: array<f32, ${count * depth}>;
    fn main(group: u32, lane: u32) {
      ${positionText(product, vectors, width)}
      let last_v = ${product.batch * count * product.inner - 1}u;
      let o = lane % ${width}u;
      ${own.map((i) => `var sum_${i} = 0.0;`)}
      ${rounds.map((round) => `var next_${round} = mat4x4<f32>();`)}
      ${range(count).map((r) => `var next_v_${r} = 0.0;`)}
      // Each round fetches the next tile while it sums the present one; the first has none to sum, the last none to
      // fetch.
      for (var k = k_begin; k < k_end + ${depth}u; k += ${depth}u) {
        if (k < k_end) {
          ${rounds.map((round) => {
            const [outerBlock, innerBlock] = blocksOf(round);
            return `next_${round} = fetch_${side}_tail(base_x, o0 + 4u * (${outerBlock}), k + 4u * (${innerBlock}), k_end);`;
          })}
          ${range(count).map((r) => `next_v_${r} = ${vector(r)};`)}
        }
        if (k > k_begin) {
          for (var j = 0u; j < ${depth}u; j++) {
            let x = tile[j * ${stride}u + o];
            ${own.map((i) => `sum_${i} = fma(staged[min(${rowOf(i)}, ${count - 1}u) * ${depth}u + j], x, sum_${i});`)}
          }
        }
        workgroupBarrier();
        if (k < k_end) {
          ${rounds.map((round) => {
            const [outerBlock, innerBlock] = blocksOf(round);
            return wgsl`
              {
                let at = 4u * (${innerBlock}) * ${stride}u + 4u * (${outerBlock});
                ${range(4).flatMap((j) => range(4).map((i) => `tile[at + ${j * stride + i}u] = next_${round}[${j}][${i}];`))}
              }
            `;
          })}
          ${range(count).map((r) => `staged[${r * depth}u + lane] = next_v_${r};`)}
        }
        workgroupBarrier();
      }
      ${halves === 1 ? `if (lane >= ${width}u) { return; }` : ""}
      if (o0 + o < ${outer}u) {
        ${own.map((i) => `if (${rowOf(i)} < ${count}u) { y[(layer * ${count}u + ${rowOf(i)}) * ${outer}u + o0 + o] = ${element}(sum_${i}); }`)}
      }
    }
  `;
};

/**
 * Returns WGSL in which each invocation sums four results directly from memory, because software adapters stop all
 * invocations at a barrier.
 */
const plainCode = (product: Product, vectors: VectorProduct, element: string): string => {
  const { side, count, outer, vectorAt } = vectors;
  const { code } = operandOf(product, side);
  const tail = product.inner % 4 !== 0;
  const vector = (r: number, j: number): string => {
    const value = `f32(v[${vectorAt(`${r}u`, tail ? `min(k + ${j}u, k_end - 1u)` : `(k + ${j}u)`)}])`;
    return tail ? `select(0.0, ${value}, k + ${j}u < k_end)` : value;
  };
  return wgsl`
    ${code}
    fn main(group: u32, lane: u32) {
      ${positionText(product, vectors, 4 * lanes)}
      let o = o0 + 4u * lane;
      if (o >= ${outer}u) { return; }
      ${range(count).map((r) => `var sum_${r} = vec4<f32>();`)}
      for (var k = k_begin; k < k_end; k += 4u) {
        let x = fetch_${side}${tail ? "_tail" : ""}(base_x, o, k${tail ? ", k_end" : ""});
        ${range(4).flatMap((j) => range(count).map((r) => `sum_${r} = fma(vec4<f32>(${vector(r, j)}), x[${j}], sum_${r});`))}
      }
      ${range(count).flatMap((r) =>
        range(4).map(
          (i) =>
            `if (o + ${i}u < ${outer}u) { y[(layer * ${count}u + ${r}u) * ${outer}u + o + ${i}u] = ${element}(sum_${r}[${i}]); }`,
        ),
      )}
    }
  `;
};

/**
 * Computes a product with one column or few rows. x is read once, 2 · rows flops per element, so the speed is limited
 * by memory bandwidth. Each sum is one chain along the inner dimension, or one chain along each piece of the inner
 * dimension.
 */
const vectorPass = (product: Product, splits: Splits, { software }: DeviceFacts): Pass => {
  const { batch, dtype, resultDtype } = product;
  const vectors = vectorProductOf(product);
  const partial = splits.count > 1;
  const element = partial ? "f32" : resultDtype;
  const groups = Math.ceil(vectors.outer / (software ? 4 * lanes : width));
  const { binding } = operandOf(product, vectors.side);
  return {
    label: `matmul ${layoutOf(product)} ${vectors.count === 1 ? "matrix-vector" : `${vectors.count} rows`}${partial ? `, ${splits.count} splits` : ""}`,
    bindings: [
      binding,
      { name: "v", type: `array<${dtype}>`, source: { input: vectors.side === "a" ? 1 : 0 }, access: "read" },
      {
        name: "y",
        type: `array<${element}>`,
        source: partial ? { scratch: 0 } : { output: 0 },
        access: "write",
      },
    ],
    workgroupSize: lanes,
    groups: splits.count * batch * groups,
    sizes: { ...matrixSizes(product), batch, groups, split_length: splits.length },
    ...featuresOf(product),
    code: (software ? plainCode : stagedCode)(product, vectors, element),
  };
};

const plan: MatmulVariant["plan"] = (product, facts) =>
  splitPlan(product, splitsByRule(product, facts), (splits) => vectorPass(product, splits, facts));

export const matrixVector: MatmulVariant = {
  name: "matrix-vector",
  sums: "by rule",
  supports: ({ rows, columns, inner }) => inner > 0 && (rows === 1 || columns === 1),
  plan,
};

export const fewRows: MatmulVariant = {
  name: "few-rows",
  sums: "by rule",
  supports: ({ rows, columns, inner }) => inner > 0 && rows > 1 && rows <= maxRows && columns > 1,
  plan,
};

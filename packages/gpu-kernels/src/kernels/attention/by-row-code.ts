import { type AttentionNode, keyLine, readRows, type SpanSource } from "./attention-node.ts";
import { wgsl } from "../../wgsl.ts";

// Number of invocations per workgroup in the kernels by row. Each invocation owns a few rows of one operand and
// iterates over four rows of the other operand at a time. An invocation reads directly from memory, without workgroup
// memory or barriers, and keeps its results in a private array.
//
// These kernels are for software adapters, which compile each memory access into dozens of instructions. Therefore the
// shader text is short, and sixteen products share eight loads. lavapipe, 256 queries × 256 keys × 64: compiles in 2 s
// and runs at 6 GFLOP/s; `attentionForward` compiles in 5 s and runs at 2 GFLOP/s. The number of vectors is a uniform
// instead of a constant. Otherwise the compiler would unroll loops over arrays, and compilation would take 32 s.

export const lanes = 8;

/**
 * Returns the WGSL fragments `text(0)` to `text(count − 1)`. The index is a row of the invocation, or one of the four
 * columns per iteration.
 */
export const each = (count: number, text: (i: number) => string): string[] =>
  Array.from({ length: count }, (_, i) => text(i));

/**
 * Returns WGSL that sets `<target><i>[n]` to the dot product of row i of `a` and column n of `b`, for several pairs of
 * operands.
 */
export const products = (
  rows: number,
  pairs: readonly (readonly [target: string, a: string, b: string])[],
  at: (n: number) => string,
): string =>
  wgsl`
    ${pairs.flatMap(([target]) => each(rows, (i) => `var ${target}${i} = vec4<f32>();`))}
    for (var part = 0u; part < sizes.vectors; part++) {
      ${pairs.map(
        ([target, a, b]) => wgsl`
          ${each(rows, (i) => `let ${a}${i} = vector_${a}(row${i}, part);`)}
          ${each(4, (n) => `let ${b}${n} = vector_${b}(${at(n)}, part);`)}
          ${each(rows, (i) => `${target}${i} += vec4<f32>(${each(4, (n) => `dot(${a}${i}, ${b}${n})`).join(", ")});`)}
        `,
      )}
    }
  `;

/** Returns WGSL that adds Σₙ `weights<i>[n]` · column n of `b` to `<result><i>`, for several results. */
export const additions = (
  rows: number,
  sums: readonly (readonly [result: string, weights: string, b: string])[],
  at: (n: number) => string,
): string =>
  wgsl`
    for (var part = 0u; part < sizes.vectors; part++) {
      ${sums.map(
        ([result, weights, b]) => wgsl`
          ${each(4, (n) => `let ${b}${n} = vector_${b}(${at(n)}, part);`)}
          ${each(rows, (i) => `${result}${i}[part] += ${each(4, (n) => `${weights}${i}[${n}] * ${b}${n}`).join(" + ")};`)}
        `,
      )}
    }
  `;

/**
 * Returns the number of rows per invocation: `most`, or 1 if `count` rows are too few for one full workgroup with
 * `most` rows per invocation.
 */
export const rowsOfLane = (count: number, most: number): number => (count >= lanes * most ? most : 1);

/**
 * Returns WGSL that declares `line` (index of the head, counted over all batch entries), the first row of the
 * workgroup, and `row0` …, the rows of the invocation. Rows after the end repeat the last row.
 */
export const declareRows = (
  node: AttentionNode,
  rows: number,
  side: "query" | "key",
  spans: SpanSource,
): string => wgsl`
  let line = group / sizes.tiles;
  ${
    side === "query"
      ? wgsl`
        let query_line = line * sizes.queries;
        ${keyLine(node)}
        ${spans.define("line", false)}
      `
      : wgsl`
        let key_line = line * sizes.keys;
        ${spans.define(`line * ${node.group}u`, false)}
      `
  }
  let last = sizes.${side === "query" ? "queries" : "keys"} - 1u;
  let first = group % sizes.tiles * ${lanes * rows}u;
  ${each(
    rows,
    (i) => wgsl`
      let at${i} = min(first + lane + ${i * lanes}u, last);
      let row${i} = ${side}_line + at${i};
    `,
  )}
`;

/** Returns the bindings of q, k and v, and WGSL that reads them. */
export const reads = (node: AttentionNode): ReturnType<typeof readRows>[] => [
  readRows("q", node, { input: 0 }),
  readRows("k", node, { input: 1 }),
  readRows("v", node, { input: 2 }),
];

/** Returns WGSL that writes rows of results, each row multiplied by a factor. */
export const put = (
  rows: number,
  results: readonly (readonly [result: string, name: string, factor: (i: number) => string])[],
): string[] =>
  each(
    rows,
    (i) => wgsl`
      if (first + lane + ${i * lanes}u <= last) {
        for (var part = 0u; part < sizes.vectors; part++) {
          ${results.map(([result, name, factor]) => `put_${name}(row${i}, part, ${result}${i}[part] * ${factor(i)});`)}
        }
      }
    `,
  );

/** Returns WGSL that declares `<name><i>`, a private array for each row of results. */
export const arrays = (rows: number, vectors: number, name: string): string[] =>
  each(rows, (i) => `var ${name}${i}: array<vec4<f32>, ${vectors}>;`);

/**
 * Returns a WGSL expression for the index of the key row of column `n` (0 to 3). Columns after the last key read the
 * row of the last key; their results are discarded.
 */
export const keyAt = (n: number): string => `key_line + min(j + ${n}u, keys - 1u)`;
export const queryAt = (n: number): string => `query_line + min(j + ${n}u, sizes.queries - 1u)`;

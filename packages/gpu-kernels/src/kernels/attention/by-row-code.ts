import { type AttentionNode, keyLine, readRows, type SpanSource } from "./attention-node.ts";
import { wgsl } from "../../wgsl.ts";

// Every invocation owns a few rows and iterates over the other side four at a time, directly from memory: no workgroup
// memory, no barriers, results in a private array. For software adapters, which compile each memory access into dozens
// of instructions. So the text is kept short, and sixteen products share eight loads. lavapipe, 256 queries × 256 keys
// × 64: compiles in 2 s and runs at 6 GFLOP/s, compared with 5 s and 2 GFLOP/s of `attentionForward`. The number of
// vectors is a size instead of a constant: the compiler unrolls loops of constant length over arrays, and then takes 32
// s.

export const lanes = 8;

/** `text` of 0, 1 …: for the rows of an invocation, or for the four columns of an iteration. */
export const each = (count: number, text: (i: number) => string): string[] =>
  Array.from({ length: count }, (_, i) => text(i));

/** `<target><i>[n]` = row i of `a` · column n of `b`, for several pairs of operands. */
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

/** `<result><i>` += Σₙ `weights<i>[n]` · column n of `b`, for several results. */
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

/** Rows per invocation: `most`, or 1 if there are few rows. */
export const rowsOfLane = (count: number, most: number): number => (count >= lanes * most ? most : 1);

/**
 * Line, first row of the workgroup, and `row0` …, the rows of the invocation. Rows after the end repeat the last row.
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

/** Bindings and WGSL of q, k and v. */
export const reads = (node: AttentionNode): ReturnType<typeof readRows>[] => [
  readRows("q", node, { input: 0 }),
  readRows("k", node, { input: 1 }),
  readRows("v", node, { input: 2 }),
];

/** Write rows of results, each row multiplied by a factor. */
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

/** `<name><i>`: a private array for each row of results. */
export const arrays = (rows: number, vectors: number, name: string): string[] =>
  each(rows, (i) => `var ${name}${i}: array<vec4<f32>, ${vectors}>;`);

/** Row index of one of four columns. Columns after the end read the last row and do not contribute. */
export const keyAt = (n: number): string => `key_line + min(j + ${n}u, keys - 1u)`;
export const queryAt = (n: number): string => `query_line + min(j + ${n}u, sizes.queries - 1u)`;

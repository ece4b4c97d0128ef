import type { KernelPlan, Pass } from "../../kernel.ts";
import {
  type AttentionNode,
  indirectScratch,
  keyLine,
  readDeltas,
  readRows,
  seenBy,
  type SpanSource,
  spansBehindDeltas,
  spansOfLimits,
  uniformSizes,
  words,
  writeRows,
} from "./attention-node.ts";
import { deltaPass, gradientPlan } from "./deltas.ts";
import { narrowPass } from "./narrow.ts";
import { floatText, vectorsOf } from "./vectors.ts";

// Every invocation owns a few rows and walks the other side four at a time, straight from memory: no workgroup memory,
// no barrier, results in an array of its own. For processors that pretend to be GPUs: they compile each access to
// memory into dozens of instructions, so the text is kept short and sixteen products share eight loads. lavapipe, 256
// queries × 256 keys × 64: compiles in 2 s and runs at 6 GFLOP/s, against 5 s and 2 GFLOP/s of `attentionForward`. The
// number of vectors is a size and no constant: loops of a known length over arrays are written out by its compiler, and
// it takes 32 s.

const lanes = 8;

const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i);
const join = (count: number, text: (i: number) => string): string => range(count).map(text).join("\n");

/** `<target><i>[n]` = row i of `a` · column n of `b`, for several pairs of operands. */
const products = (
  rows: number,
  vectors: number,
  pairs: readonly (readonly [target: string, a: string, b: string])[],
  at: (n: number) => string,
): string =>
  `${pairs.map(([target]) => join(rows, (i) => `    var ${target}${i} = vec4<f32>();`)).join("\n")}
    for (var part = 0u; part < sizes.vectors; part++) {
${pairs
  .map(
    ([target, a, b]) => `${join(rows, (i) => `      let ${a}${i} = vector_${a}(row${i}, part);`)}
${join(4, (n) => `      let ${b}${n} = vector_${b}(${at(n)}, part);`)}
${join(
  rows,
  (i) =>
    `      ${target}${i} += vec4<f32>(${range(4)
      .map((n) => `dot(${a}${i}, ${b}${n})`)
      .join(", ")});`,
)}`,
  )
  .join("\n")}
    }`;

/** `<result><i>` += Σₙ `weights<i>[n]` · column n of `b`, for several results. */
const additions = (
  rows: number,
  vectors: number,
  sums: readonly (readonly [result: string, weights: string, b: string])[],
  at: (n: number) => string,
): string =>
  `    for (var part = 0u; part < sizes.vectors; part++) {
${sums
  .map(
    ([result, weights, b]) => `${join(4, (n) => `      let ${b}${n} = vector_${b}(${at(n)}, part);`)}
${join(
  rows,
  (i) =>
    `      ${result}${i}[part] += ${range(4)
      .map((n) => `${weights}${i}[${n}] * ${b}${n}`)
      .join(" + ")};`,
)}`,
  )
  .join("\n")}
    }`;

/** Rows of an invocation: 4, or 1 where there are not many. */
const rowsOfLane = (count: number, most: number): number => (count >= lanes * most ? most : 1);

/** Line, first row of the workgroup, and `row0` …, the rows of the invocation; those behind the end repeat the last. */
const place = (
  node: AttentionNode,
  rows: number,
  side: "query" | "key",
  spans: SpanSource,
): string => `  let line = group / sizes.tiles;
${
  side === "query"
    ? `  let query_line = line * sizes.queries;\n${keyLine(node)}\n${spans.define("line", false)}`
    : `  let key_line = line * sizes.keys;\n${spans.define(`line * ${node.group}u`, false)}`
}
  let last = sizes.${side === "query" ? "queries" : "keys"} - 1u;
  let first = group % sizes.tiles * ${lanes * rows}u;
${join(rows, (i) => `  let at${i} = min(first + lane + ${i * lanes}u, last);\n  let row${i} = ${side}_line + at${i};`)}`;

const reads = (node: AttentionNode): ReturnType<typeof readRows>[] => [
  readRows("q", node, { input: 0 }),
  readRows("k", node, { input: 1 }),
  readRows("v", node, { input: 2 }),
];

const put = (
  rows: number,
  vectors: number,
  results: readonly (readonly [result: string, name: string, factor: (i: number) => string])[],
): string =>
  join(
    rows,
    (i) => `  if (first + lane + ${i * lanes}u <= last) {
    for (var part = 0u; part < sizes.vectors; part++) {
${results.map(([result, name, factor]) => `      put_${name}(row${i}, part, ${result}${i}[part] * ${factor(i)});`).join("\n")}
    }
  }`,
  );

const arrays = (rows: number, vectors: number, name: string): string =>
  join(rows, (i) => `  var ${name}${i}: array<vec4<f32>, ${vectors}>;`);

/** The last of four columns may lie behind the end: it is read at the end instead, and counts nothing. */
const keyAt = (n: number): string => `key_line + min(j + ${n}u, keys - 1u)`;
const queryAt = (n: number): string => `query_line + min(j + ${n}u, sizes.queries - 1u)`;

/** `attentionForward` by rows of queries. */
export const attentionForwardByRow = (node: AttentionNode): KernelPlan => {
  const { lines, queries, width, scale } = node;
  const spans = spansOfLimits(node, 3);
  const vectors = vectorsOf(width);
  const rows = rowsOfLane(queries, 4);
  const operands = reads(node);
  const y = writeRows("y", node, { output: 0 }, 0);
  const tiles = Math.ceil(queries / (lanes * rows));
  const pass: Pass = {
    label: "attention by row",
    bindings: [
      ...operands.map(({ binding }) => binding),
      ...spans.bindings,
      y.binding,
      words("sums", { output: 1 }, "write"),
    ],
    workgroupSize: lanes,
    groups: lines * tiles,
    sizes: { ...uniformSizes(node, tiles), vectors },
    code: `var<private> never: u32 = 0u;
${operands.map(({ code }) => code).join("")}${y.code}${seenBy(node)}${spans.code}
fn main(group: u32, lane: u32) {
${place(node, rows, "query", spans)}
  let lowest = -3.4028234e38f;
  let end = seen_by(min(first + ${lanes * rows - 1}u, last), keys, start);
${arrays(rows, vectors, "o")}
${join(rows, (i) => `  let seen${i} = seen_by(at${i}, keys, start);\n  var m${i} = lowest;\n  var l${i} = 0.0;`)}
  for (var j = 0u; j < end; j += 4u) {
${products(rows, vectors, [["s", "q", "k"]], keyAt)}
    let column = vec4<u32>(j) + vec4<u32>(0u, 1u, 2u, 3u);
${join(
  rows,
  (i) => `    let visible${i} = column < vec4<u32>(seen${i});
    s${i} = select(vec4<f32>(lowest), s${i} * ${floatText(scale * Math.LOG2E)}, visible${i});
    let most${i} = max(max(s${i}.x, s${i}.y), max(s${i}.z, s${i}.w));
    if (most${i} > m${i}) {
      let shrink = exp2(m${i} - most${i});
      m${i} = most${i};
      l${i} *= shrink;
      for (var part = 0u; part < sizes.vectors; part++) { o${i}[part] *= shrink; }
    }
    let p${i} = select(vec4<f32>(), exp2(s${i} - m${i}), visible${i});
    l${i} += (p${i}.x + p${i}.y) + (p${i}.z + p${i}.w);`,
)}
${additions(rows, vectors, [["o", "p", "v"]], keyAt)}
  }
${join(
  rows,
  (i) => `  // A query that sees no key yields zeros and -inf.
  let share${i} = select(1.0 / l${i}, 0.0, seen${i} == 0u);
  if (first + lane + ${i * lanes}u <= last) {
    sums[row${i}] = select((m${i} + log2(l${i})) * ${floatText(Math.LN2)}, bitcast<f32>(0xff800000u | never), seen${i} == 0u);
  }`,
)}
${put(rows, vectors, [["o", "y", (i) => `share${i}`]])}
}`,
  };
  const scratch = indirectScratch(node, [lines * queries]);
  if (scratch.length === 0) return { passes: [pass] };
  return { scratch, passes: [pass, narrowPass({ scratch: 0 }, { output: 0 }, lines * queries * width)] };
};

/** dq by rows of queries. */
const queryPass = (node: AttentionNode, delta: number, indirect: number): Pass => {
  const { lines, queries, width, scale } = node;
  const spans = spansBehindDeltas(node);
  const deltas = readDeltas(node, delta);
  const vectors = vectorsOf(width);
  const rows = rowsOfLane(queries, 2);
  const operands = [...reads(node), readRows("g", node, { input: 5 })];
  const dq = writeRows("dq", node, { output: 0 }, indirect);
  const tiles = Math.ceil(queries / (lanes * rows));
  return {
    label: "attention-backward queries by row",
    bindings: [
      ...operands.map(({ binding }) => binding),
      words("sums", { input: 4 }, "read"),
      deltas.binding,
      dq.binding,
    ],
    workgroupSize: lanes,
    groups: lines * tiles,
    sizes: { ...uniformSizes(node, tiles), vectors },
    code: `var<private> never: u32 = 0u;
${operands.map(({ code }) => code).join("")}${dq.code}${seenBy(node)}${spans.code}
fn main(group: u32, lane: u32) {
${place(node, rows, "query", spans)}
  let end = seen_by(min(first + ${lanes * rows - 1}u, last), keys, start);
${arrays(rows, vectors, "y")}
${join(rows, (i) => `  let seen${i} = seen_by(at${i}, keys, start);\n  let sum${i} = sums[row${i}] * ${floatText(Math.LOG2E)};\n  let delta${i} = ${deltas.at(`row${i}`)};`)}
  for (var j = 0u; j < end; j += 4u) {
${products(
  rows,
  vectors,
  [
    ["s", "q", "k"],
    ["d", "g", "v"],
  ],
  keyAt,
)}
    let column = vec4<u32>(j) + vec4<u32>(0u, 1u, 2u, 3u);
${join(
  rows,
  (i) => `    let p${i} = exp2(s${i} * ${floatText(scale * Math.LOG2E)} - sum${i});
    let ds${i} = select(vec4<f32>(), p${i} * (d${i} - delta${i}), column < vec4<u32>(seen${i}));`,
)}
${additions(rows, vectors, [["y", "ds", "k"]], keyAt)}
  }
${put(rows, vectors, [["y", "dq", () => floatText(scale)]])}
}`,
  };
};

/** dk and dv by rows of keys. */
const keyPass = (node: AttentionNode, delta: number, indirect: number): Pass => {
  const { group, keys, width, causal, scale } = node;
  const spans = spansBehindDeltas(node);
  const deltas = readDeltas(node, delta);
  const vectors = vectorsOf(width);
  const rows = rowsOfLane(keys, 2);
  const operands = [...reads(node), readRows("g", node, { input: 5 })];
  const [dk, dv] = [writeRows("dk", node, { output: 1 }, indirect), writeRows("dv", node, { output: 2 }, indirect + 1)];
  const tiles = Math.ceil(keys / (lanes * rows));
  return {
    label: "attention-backward keys by row",
    bindings: [
      ...operands.map(({ binding }) => binding),
      words("sums", { input: 4 }, "read"),
      deltas.binding,
      dk.binding,
      dv.binding,
    ],
    workgroupSize: lanes,
    groups: (node.lines / group) * tiles,
    sizes: { ...uniformSizes(node, tiles), vectors },
    code: `var<private> never: u32 = 0u;
${operands.map(({ code }) => code).join("")}${dk.code}${dv.code}${seenBy(node)}${spans.code}
fn main(group: u32, lane: u32) {
${place(node, rows, "key", spans)}
  let begin = ${causal ? "u32(max(0, i32(first) - start))" : "0u"};
  let end = select(0u, sizes.queries, first < keys);
${arrays(rows, vectors, "y")}
${arrays(rows, vectors, "z")}
  for (var member = 0u; member < ${group}u; member++) {
  let query_line = (line * ${group}u + member) * sizes.queries;
  for (var j = begin; j < end; j += 4u) {
${products(
  rows,
  vectors,
  [
    ["s", "k", "q"],
    ["d", "v", "g"],
  ],
  queryAt,
)}
    var seen = vec4<u32>();
    var sum = vec4<f32>();
    var delta_of = vec4<f32>();
    for (var n = 0u; n < 4u; n++) {
      if (j + n < sizes.queries) {
        seen[n] = seen_by(j + n, keys, start);
        sum[n] = sums[query_line + j + n] * ${floatText(Math.LOG2E)};
        delta_of[n] = ${deltas.at("query_line + j + n")};
      }
    }
${join(
  rows,
  (i) => `    let visible${i} = vec4<u32>(at${i}) < seen;
    let p${i} = select(vec4<f32>(), exp2(s${i} * ${floatText(scale * Math.LOG2E)} - sum), visible${i});
    let ds${i} = select(vec4<f32>(), p${i} * (d${i} - delta_of), visible${i});`,
)}
${additions(
  rows,
  vectors,
  [
    ["y", "ds", "q"],
    ["z", "p", "g"],
  ],
  queryAt,
)}
  }
  }
${put(rows, vectors, [
  ["y", "dk", () => floatText(scale)],
  ["z", "dv", () => "1.0"],
])}
}`,
  };
};

/** `attentionBackward` by rows of queries for dq, of keys for dk and dv. */
export const attentionBackwardByRow = (node: AttentionNode): KernelPlan =>
  gradientPlan(node, (delta, indirect) => [
    deltaPass(node, delta),
    queryPass(node, delta, indirect),
    keyPass(node, delta, indirect + 1),
  ]);

import type { KernelPlan, Pass } from "../../kernel.ts";
import {
  type AttentionNode,
  readDeltas,
  readRows,
  seenBy,
  spansBehindDeltas,
  uniformSizes,
  words,
  writeRows,
} from "./attention-node.ts";
import {
  additions,
  arrays,
  each,
  keyAt,
  lanes,
  declareRows,
  products,
  put,
  queryAt,
  reads,
  rowsOfLane,
} from "./by-row-code.ts";
import { deltaPass, gradientPlan } from "./deltas.ts";
import { floatText, vectorsOf } from "./vectors.ts";
import { wgsl } from "../../wgsl.ts";

/** Computes dq, the gradient of the queries. Each invocation owns rows of queries. */
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
    code: wgsl`
      var<private> never: u32 = 0u;
      ${operands.map(({ code }) => code)}
      ${dq.code}
      ${seenBy(node)}
      ${spans.code}
      fn main(group: u32, lane: u32) {
        ${declareRows(node, rows, "query", spans)}
        let end = seen_by(min(first + ${lanes * rows - 1}u, last), keys, start);
        ${arrays(rows, vectors, "y")}
        ${each(
          rows,
          (i) => wgsl`
            let seen${i} = seen_by(at${i}, keys, start);
            let sum${i} = sums[row${i}] * ${floatText(Math.LOG2E)};
            let delta${i} = ${deltas.at(`row${i}`)};
          `,
        )}
        for (var j = 0u; j < end; j += 4u) {
          ${products(
            rows,
            [
              ["s", "q", "k"],
              ["d", "g", "v"],
            ],
            keyAt,
          )}
          let column = vec4<u32>(j) + vec4<u32>(0u, 1u, 2u, 3u);
          ${each(
            rows,
            (i) => wgsl`
              let p${i} = exp2(s${i} * ${floatText(scale * Math.LOG2E)} - sum${i});
              let ds${i} = select(vec4<f32>(), p${i} * (d${i} - delta${i}), column < vec4<u32>(seen${i}));
            `,
          )}
          ${additions(rows, [["y", "ds", "k"]], keyAt)}
        }
        ${put(rows, [["y", "dq", () => floatText(scale)]])}
      }
    `,
  };
};

/** Computes dk and dv, the gradients of the keys and values. Each invocation owns rows of keys. */
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
    code: wgsl`
      var<private> never: u32 = 0u;
      ${operands.map(({ code }) => code)}
      ${dk.code}
      ${dv.code}
      ${seenBy(node)}
      ${spans.code}
      fn main(group: u32, lane: u32) {
        ${declareRows(node, rows, "key", spans)}
        let begin = ${causal ? "u32(max(0, i32(first) - start))" : "0u"};
        let end = select(0u, sizes.queries, first < keys);
        ${arrays(rows, vectors, "y")}
        ${arrays(rows, vectors, "z")}
        for (var member = 0u; member < ${group}u; member++) {
          let query_line = (line * ${group}u + member) * sizes.queries;
          for (var j = begin; j < end; j += 4u) {
            ${products(
              rows,
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
            ${each(
              rows,
              (i) => wgsl`
                let visible${i} = vec4<u32>(at${i}) < seen;
                let p${i} = select(vec4<f32>(), exp2(s${i} * ${floatText(scale * Math.LOG2E)} - sum), visible${i});
                let ds${i} = select(vec4<f32>(), p${i} * (d${i} - delta_of), visible${i});
              `,
            )}
            ${additions(
              rows,
              [
                ["y", "ds", "q"],
                ["z", "p", "g"],
              ],
              queryAt,
            )}
          }
        }
        ${put(rows, [
          ["y", "dk", () => floatText(scale)],
          ["z", "dv", () => "1.0"],
        ])}
      }
    `,
  };
};

/**
 * Computes `attentionBackward` on software adapters: invocations own rows of queries for dq, and rows of keys for dk
 * and dv.
 */
export const attentionBackwardByRow = (node: AttentionNode): KernelPlan =>
  gradientPlan(node, (delta, indirect) => [
    deltaPass(node, delta),
    queryPass(node, delta, indirect),
    keyPass(node, delta, indirect + 1),
  ]);

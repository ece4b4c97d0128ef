import type { KernelPlan, Pass } from "../../kernel.ts";
import {
  type AttentionNode,
  indirectScratch,
  seenBy,
  spansOfLimits,
  uniformSizes,
  words,
  writeRows,
} from "./attention-node.ts";
import { additions, arrays, each, keyAt, lanes, declareRows, products, put, reads, rowsOfLane } from "./by-row-code.ts";
import { narrowPass } from "./narrow.ts";
import { floatText, vectorsOf } from "./vectors.ts";
import { wgsl } from "../../wgsl.ts";

/** Computes `attentionForward` on software adapters: each invocation owns rows of queries. */
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
    code: wgsl`
      var<private> never: u32 = 0u;
      ${operands.map(({ code }) => code)}
      ${y.code}
      ${seenBy(node)}
      ${spans.code}
      fn main(group: u32, lane: u32) {
        ${declareRows(node, rows, "query", spans)}
        let lowest = -3.4028234e38f;
        let end = seen_by(min(first + ${lanes * rows - 1}u, last), keys, start);
        ${arrays(rows, vectors, "o")}
        ${each(
          rows,
          (i) => wgsl`
            let seen${i} = seen_by(at${i}, keys, start);
            var m${i} = lowest;
            var l${i} = 0.0;
          `,
        )}
        for (var j = 0u; j < end; j += 4u) {
          ${products(rows, [["s", "q", "k"]], keyAt)}
          let column = vec4<u32>(j) + vec4<u32>(0u, 1u, 2u, 3u);
          ${each(
            rows,
            (i) => wgsl`
              let visible${i} = column < vec4<u32>(seen${i});
              s${i} = select(vec4<f32>(lowest), s${i} * ${floatText(scale * Math.LOG2E)}, visible${i});
              let most${i} = max(max(s${i}.x, s${i}.y), max(s${i}.z, s${i}.w));
              if (most${i} > m${i}) {
                let shrink = exp2(m${i} - most${i});
                m${i} = most${i};
                l${i} *= shrink;
                for (var part = 0u; part < sizes.vectors; part++) { o${i}[part] *= shrink; }
              }
              let p${i} = select(vec4<f32>(), exp2(s${i} - m${i}), visible${i});
              l${i} += (p${i}.x + p${i}.y) + (p${i}.z + p${i}.w);
            `,
          )}
          ${additions(rows, [["o", "p", "v"]], keyAt)}
        }
        ${each(
          rows,
          (i) => wgsl`
            // A query that sees no key yields zeros and -inf.
            let share${i} = select(1.0 / l${i}, 0.0, seen${i} == 0u);
            if (first + lane + ${i * lanes}u <= last) {
              sums[row${i}] = select((m${i} + log2(l${i})) * ${floatText(Math.LN2)}, bitcast<f32>(0xff800000u | never), seen${i} == 0u);
            }
          `,
        )}
        ${put(rows, [["o", "y", (i) => `share${i}`]])}
      }
    `,
  };
  const scratch = indirectScratch(node, [lines * queries]);
  if (scratch.length === 0) return { passes: [pass] };
  return { scratch, passes: [pass, narrowPass({ scratch: 0 }, { output: 0 }, lines * queries * width)] };
};

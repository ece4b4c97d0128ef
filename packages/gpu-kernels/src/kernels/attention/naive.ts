import type { KernelPlan } from "../../kernel.ts";
import { type AttentionNode, keyLine, seenBy, spansOfLimits, uniformSizes, words } from "./attention-node.ts";
import { floatText } from "./vectors.ts";
import { wgsl } from "../../wgsl.ts";

const lanes = 64;

/**
 * Computes attention by its definition in f32, as a reference for tests: one invocation per query computes the
 * logsumexp of its scores, then one invocation per entry of the result computes `Σⱼ exp(sⱼ − logsumexp)·vⱼ`,
 * recomputing each score. Cost: 2 · width² flops per visible query-key pair.
 */
export const attentionNaive = (node: AttentionNode): KernelPlan => {
  const { lines, queries, width, scale } = node;
  const spans = spansOfLimits(node, 3);
  const score = wgsl`
    ${seenBy(node)}
    ${spans.code}
    fn score(row: u32, j: u32) -> f32 {
      let line = row / sizes.queries;
      ${keyLine(node)}
      let key = key_line + j;
      var dot = 0.0;
      for (var d = 0u; d < ${width}u; d++) { dot += q[row * ${width}u + d] * k[key * ${width}u + d]; }
      return dot * ${floatText(scale)};
    }
  `;
  const reads = [words("q", { input: 0 }, "read"), words("k", { input: 1 }, "read"), ...spans.bindings];
  return {
    passes: [
      {
        label: "attention naive sums",
        bindings: [...reads, words("sums", { output: 1 }, "write")],
        workgroupSize: lanes,
        groups: Math.ceil((lines * queries) / lanes),
        sizes: uniformSizes(node, lines * queries),
        code: wgsl`
          var<private> never: u32 = 0u;
          ${score}
          fn main(group: u32, lane: u32) {
            let row = group * ${lanes}u + lane;
            if (row >= sizes.tiles) { return; }
            let line = row / sizes.queries;
            ${spans.define("line", false)}
            let seen = seen_by(row % sizes.queries, keys, start);
            var largest = -3.4028234e38f;
            for (var j = 0u; j < seen; j++) { largest = max(largest, score(row, j)); }
            var total = 0.0;
            for (var j = 0u; j < seen; j++) { total += exp(score(row, j) - largest); }
            sums[row] = select(largest + log(total), bitcast<f32>(0xff800000u | never), seen == 0u);
          }
        `,
      },
      {
        label: "attention naive",
        bindings: [
          ...reads,
          words("v", { input: 2 }, "read"),
          words("sums", { output: 1 }, "read"),
          words("y", { output: 0 }, "write"),
        ],
        workgroupSize: lanes,
        groups: Math.ceil((lines * queries * width) / lanes),
        sizes: uniformSizes(node, lines * queries * width),
        code: wgsl`
          ${score}
          fn main(group: u32, lane: u32) {
            let at = group * ${lanes}u + lane;
            if (at >= sizes.tiles) { return; }
            let row = at / ${width}u;
            let line = row / sizes.queries;
            ${spans.define("line", false)}
            let seen = seen_by(row % sizes.queries, keys, start);
            ${keyLine(node)}
            var sum = 0.0;
            for (var j = 0u; j < seen; j++) {
              sum += exp(score(row, j) - sums[row]) * v[(key_line + j) * ${width}u + at % ${width}u];
            }
            y[at] = sum;
          }
        `,
      },
    ],
  };
};

import { bytesPerElement } from "@skein/tensor-core";
import type { KernelPlan, Pass } from "../../kernel.ts";
import { type AttentionNode, indirectScratch, readRows, spansOfLimits, words } from "./attention-node.ts";
import { narrowPass } from "./narrow.ts";
import { vectorsOf } from "./vectors.ts";
import { wgsl } from "../../wgsl.ts";

const workgroupSize = 64;

/**
 * Computes δ = Σ g·out for each query, with one invocation per query. If the node has limits, the number of keys and
 * the start of each batch entry are written after δ.
 */
export const deltaPass = (node: AttentionNode, scratch: number): Pass => {
  const out = readRows("out", node, { input: 3 });
  const g = readRows("g", node, { input: 5 });
  const { batch, queries, keys, limited } = node;
  const count = node.lines * queries;
  const spans = spansOfLimits(node, 6);
  const word = limited ? "bitcast<u32>" : "";
  return {
    label: "attention-backward deltas",
    bindings: [
      out.binding,
      g.binding,
      ...spans.bindings,
      { ...words("delta", { scratch }, "write"), type: limited ? "array<u32>" : "array<f32>" },
    ],
    workgroupSize,
    groups: Math.ceil((limited ? Math.max(count, batch) : count) / workgroupSize),
    code: wgsl`
      ${out.code}
      ${g.code}
      ${spans.code}
      fn main(group: u32, lane: u32) {
        let row = group * ${workgroupSize}u + lane;
        ${
          limited
            ? wgsl`
              if (row < ${batch}u) {
                let entry = span_of(row);
                delta[sizes.rows + 2u * row] = entry.x;
                delta[sizes.rows + 2u * row + 1u] = entry.y;
              }
            `
            : ""
        }
        if (row >= sizes.rows) { return; }
        var sum = vec4<f32>();
        for (var v = 0u; v < ${vectorsOf(node.width)}u; v++) { sum = fma(vector_out(row, v), vector_g(row, v), sum); }
        delta[row] = ${word}((sum.x + sum.y) + (sum.z + sum.w));
      }
    `,
    sizes: { rows: count, queries, keys },
  };
};

/**
 * Returns a plan of the backward pass with scratch blocks for δ, and for gradients whose rows share words.
 *
 * @param passes Creates the passes from two block indices: the scratch block of δ, and the first scratch block of
 * gradients whose rows share words (dq, followed by dk and dv).
 */
export const gradientPlan = (
  node: AttentionNode,
  passes: (delta: number, indirect: number) => readonly Pass[],
): KernelPlan => {
  const { batch, lines, group, limited, queries, keys, width } = node;
  const keyRows = (lines / group) * keys;
  const rows = [lines * queries, keyRows, keyRows];
  const indirect = indirectScratch(node, rows);
  return {
    scratch: [Math.max(1, rows[0]! + (limited ? 2 * batch : 0)) * bytesPerElement.f32, ...indirect],
    passes: [
      ...passes(0, 1),
      ...indirect.map((_, i) => narrowPass({ scratch: 1 + i }, { output: i }, rows[i]! * width)),
    ].filter((pass) => pass.groups > 0),
  };
};

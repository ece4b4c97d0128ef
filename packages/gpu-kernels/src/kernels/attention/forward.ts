import type { DeviceFacts, KernelPlan, Pass } from "../../kernel.ts";
import {
  type AttentionNode,
  indirectScratch,
  keyLine,
  readRows,
  seenBy,
  spansOfLimits,
  uniformSizes,
  words,
  writeRows,
} from "./attention-node.ts";
import { narrowPass } from "./narrow.ts";
import { attentionTile, tileColumns, tileRows, weightStride } from "./tile.ts";
import {
  addWeighted,
  eachRow,
  declareCoordinates,
  loadNear,
  productOfRows,
  resultNames,
  resultVariables,
  type Rows,
  storeResult,
  tileMemory,
} from "./tile-code.ts";
import { floatText } from "./vectors.ts";
import { wgsl } from "../../wgsl.ts";

/**
 * Computes `softmax(scale · q kᵀ) v` and the logsumexp of the scores. A workgroup owns a tile of queries and iterates
 * over the keys tile by tile with a running maximum and sum, so that scores are never written to memory. Exponentials
 * have base 2 instead of e; the factor log₂e is part of the scale. Cost: one pass; 4 · width flops per visible
 * query-key pair; k and v are read once per tile of queries.
 *
 * Source: Dao et al. 2022, arXiv 2205.14135, algorithm 1, with the loops exchanged and the division at the end as in
 * Dao 2023, arXiv 2307.08691, algorithm 1.
 */
export const attentionForward = (node: AttentionNode, facts: DeviceFacts): KernelPlan => {
  const { lines, queries, width, scale } = node;
  const tile = attentionTile(width, lines, queries, { rowOperands: 1, results: 1, exchanges: true }, facts);
  const [rows, columns] = [tileRows(tile), tileColumns(tile)];
  const { rowLanes, columnLanes } = tile;
  const q = readRows("q", node, { input: 0 });
  const k = readRows("k", node, { input: 1 });
  const v = readRows("v", node, { input: 2 });
  const y = writeRows("y", node, { output: 0 }, 0);
  const spans = spansOfLimits(node, 3);
  const tiles = Math.ceil(queries / rows);
  const query: Rows = { operand: "q", line: "query_line", first: "first", end: "sizes.queries" };
  const key = (operand: string): Rows => ({ operand, line: "key_line", first: "k0", end: "keys" });
  const row = (i: number): string => `(r + ${i * rowLanes}u)`;
  const code = wgsl`
    var<private> never: u32 = 0u;
    ${q.code}
    ${k.code}
    ${v.code}
    ${y.code}
    ${seenBy(node)}
    ${spans.code}
    ${tileMemory(tile, ["near"])}
    var<workgroup> exchange: array<f32, ${rows * columnLanes}>;
    fn main(group: u32, lane: u32) {
      let lowest = -3.4028234e38f;
      let line = group / sizes.tiles;
      let query_line = line * sizes.queries;
      ${keyLine(node)}
      ${spans.define("line", true)}
      // Causal tiles at the end are the long ones: they start first.
      let first = (sizes.tiles - 1u - group % sizes.tiles) * ${rows}u;
      ${declareCoordinates(tile)}
      ${tile.resident ? loadNear(tile, "near", "q", "query_line", "first", "sizes.queries", "0u") : ""}
      ${eachRow(
        (i) => wgsl`
          let seen${i} = seen_by(first + ${row(i)}, keys, start);
          var m${i} = lowest;
          var l${i} = 0.0;
        `,
      )}
      ${resultVariables(tile, "o")}
      let end = seen_by(min(first + ${rows - 1}u, sizes.queries - 1u), keys, start);
      for (var k0 = 0u; k0 < end; k0 += ${columns}u) {
        ${productOfRows(tile, "s", "near", query, key("k"))}
        let column = vec4<u32>(k0 + 4u * c) + vec4<u32>(0u, 1u, 2u, 3u);
        ${eachRow(
          (i) => wgsl`
            let visible${i} = column < vec4<u32>(seen${i});
            s${i} = select(vec4<f32>(lowest), s${i} * ${floatText(scale * Math.LOG2E)}, visible${i});
            exchange[c * ${rows}u + ${row(i)}] = max(max(s${i}.x, s${i}.y), max(s${i}.z, s${i}.w));
          `,
        )}
        workgroupBarrier();
        ${eachRow(
          (i) => wgsl`
            {
              var m = m${i};
              for (var t = 0u; t < ${columnLanes}u; t++) { m = max(m, exchange[t * ${rows}u + ${row(i)}]); }
              let shrink = exp2(m${i} - m);
              m${i} = m;
              let p = select(vec4<f32>(), exp2(s${i} - m), visible${i});
              weights[${row(i)} * ${weightStride(tile)}u + c] = p;
              l${i} = l${i} * shrink + ((p.x + p.y) + (p.z + p.w));
              ${resultNames(tile, "o", i).map((name) => `${name} *= shrink;`)}
            }
          `,
        )}
        ${addWeighted(tile, "o", key("v"))}
      }
      workgroupBarrier();
      ${eachRow((i) => `exchange[c * ${rows}u + ${row(i)}] = l${i};`)}
      workgroupBarrier();
      ${eachRow(
        (i) => wgsl`
          var total${i} = 0.0;
          for (var t = 0u; t < ${columnLanes}u; t++) { total${i} += exchange[t * ${rows}u + ${row(i)}]; }
          // A query that sees no key yields zeros and -inf.
          let share${i} = select(1.0 / total${i}, 0.0, seen${i} == 0u);
          if (c == 0u && first + ${row(i)} < sizes.queries) {
            sums[query_line + first + ${row(i)}] = select((m${i} + log2(total${i})) * ${floatText(Math.LN2)}, bitcast<f32>(0xff800000u | never), seen${i} == 0u);
          }
        `,
      )}
      ${storeResult(tile, "o", "y", "query_line", "first", "sizes.queries", (i) => `share${i}`)}
    }
  `;
  const pass: Pass = {
    label: `attention ${rows}x${columns}${tile.resident ? "" : ` by ${4 * tile.chunk}`}`,
    bindings: [q.binding, k.binding, v.binding, ...spans.bindings, y.binding, words("sums", { output: 1 }, "write")],
    workgroupSize: rowLanes * columnLanes,
    groups: lines * tiles,
    code,
    sizes: uniformSizes(node, tiles),
  };
  const scratch = indirectScratch(node, [lines * queries]);
  if (scratch.length === 0) return { passes: [pass] };
  return { scratch, passes: [pass, narrowPass({ scratch: 0 }, { output: 0 }, lines * queries * width)] };
};

import type { DeviceFacts, KernelPlan, Pass } from "../../kernel.ts";
import {
  type AttentionNode,
  keyLine,
  readDeltas,
  readRows,
  seenBy,
  spansBehindDeltas,
  uniformSizes,
  words,
  writeRows,
} from "./attention-node.ts";
import { deltaPass, gradientPlan } from "./deltas.ts";
import { attentionTile, tileColumns, tileRows, weightStride } from "./tile.ts";
import {
  addFar,
  addWeighted,
  eachRow,
  declareCoordinates,
  loadNear,
  productOfRows,
  resultVariables,
  type Rows,
  storeResult,
  tileMemory,
} from "./tile-code.ts";
import { floatText } from "./vectors.ts";
import { wgsl } from "../../wgsl.ts";

const operands = (node: AttentionNode): ReturnType<typeof readRows>[] => [
  readRows("q", node, { input: 0 }),
  readRows("k", node, { input: 1 }),
  readRows("v", node, { input: 2 }),
  readRows("g", node, { input: 5 }),
];

const queryRows = (operand: string, first: string): Rows => ({
  operand,
  line: "query_line",
  first,
  end: "sizes.queries",
});
const keyRows = (operand: string, first: string): Rows => ({ operand, line: "key_line", first, end: "keys" });

/**
 * Computes dq. A workgroup owns a tile of queries and iterates over the keys that the queries attend to. Weights are
 * recomputed from the logsumexp. Cost: 6 · width flops per visible query-key pair.
 */
const queryPass = (node: AttentionNode, facts: DeviceFacts, delta: number, indirect: number): Pass => {
  const { lines, queries, width, scale } = node;
  const spans = spansBehindDeltas(node);
  const deltas = readDeltas(node, delta);
  const tile = attentionTile(width, lines, queries, { rowOperands: 2, results: 1, exchanges: false }, facts);
  const [rows, columns] = [tileRows(tile), tileColumns(tile)];
  const tiles = Math.ceil(queries / rows);
  const row = (i: number): string => `(r + ${i * tile.rowLanes}u)`;
  const reads = operands(node);
  const dq = writeRows("dq", node, { output: 0 }, indirect);
  const nearGradients = tile.resident ? "near_g" : "near";
  const load = (near: string, operand: string): string =>
    loadNear(tile, near, operand, "query_line", "first", "sizes.queries", "0u");
  return {
    label: `attention-backward queries ${rows}x${columns}${tile.resident ? "" : ` by ${4 * tile.chunk}`}`,
    bindings: [...reads.map(({ binding }) => binding), words("sums", { input: 4 }, "read"), deltas.binding, dq.binding],
    workgroupSize: tile.rowLanes * tile.columnLanes,
    groups: lines * tiles,
    code: wgsl`
      var<private> never: u32 = 0u;
      ${reads.map(({ code }) => code)}
      ${dq.code}
      ${seenBy(node)}
      ${spans.code}
      ${tileMemory(tile, tile.resident ? ["near", "near_g"] : ["near"])}
      fn main(group: u32, lane: u32) {
        let line = group / sizes.tiles;
        let query_line = line * sizes.queries;
        ${keyLine(node)}
        ${spans.define("line", true)}
        let first = (sizes.tiles - 1u - group % sizes.tiles) * ${rows}u;
        ${declareCoordinates(tile)}
        ${
          tile.resident
            ? wgsl`
              ${load("near", "q")}
              ${load("near_g", "g")}
            `
            : ""
        }
        ${eachRow(
          (i) => wgsl`
            let at${i} = query_line + min(first + ${row(i)}, sizes.queries - 1u);
            let seen${i} = seen_by(first + ${row(i)}, keys, start);
            let sum${i} = sums[at${i}] * ${floatText(Math.LOG2E)};
            let delta${i} = ${deltas.at(`at${i}`)};
          `,
        )}
        ${resultVariables(tile, "dq")}
        let end = seen_by(min(first + ${rows - 1}u, sizes.queries - 1u), keys, start);
        for (var k0 = 0u; k0 < end; k0 += ${columns}u) {
          ${productOfRows(tile, "d", nearGradients, queryRows("g", "first"), keyRows("v", "k0"))}
          ${productOfRows(tile, "s", "near", queryRows("q", "first"), keyRows("k", "k0"))}
          let column = vec4<u32>(k0 + 4u * c) + vec4<u32>(0u, 1u, 2u, 3u);
          ${eachRow(
            (i) => wgsl`
              {
                let p = exp2(s${i} * ${floatText(scale * Math.LOG2E)} - sum${i});
                weights[${row(i)} * ${weightStride(tile)}u + c] = select(vec4<f32>(), p * (d${i} - delta${i}), column < vec4<u32>(seen${i}));
              }
            `,
          )}
          ${
            tile.resident
              ? wgsl`
                workgroupBarrier();
                ${addFar(tile, "dq")}
              `
              : addWeighted(tile, "dq", keyRows("k", "k0"))
          }
        }
        ${storeResult(tile, "dq", "dq", "query_line", "first", "sizes.queries", () => floatText(scale))}
      }
    `,
    sizes: uniformSizes(node, tiles),
  };
};

/**
 * Computes dk and dv. A workgroup owns a tile of keys and iterates over the queries that attend to the keys. Cost: 8 ·
 * width flops per visible query-key pair.
 */
const keyPass = (node: AttentionNode, facts: DeviceFacts, delta: number, indirect: number): Pass => {
  const { group, keys, width, causal, scale } = node;
  const spans = spansBehindDeltas(node);
  const deltas = readDeltas(node, delta);
  const lines = node.lines / group;
  const tile = attentionTile(width, lines, keys, { rowOperands: 2, results: 2, exchanges: false }, facts);
  const [rows, columns] = [tileRows(tile), tileColumns(tile)];
  const tiles = Math.ceil(keys / rows);
  const row = (i: number): string => `(r + ${i * tile.rowLanes}u)`;
  const reads = operands(node);
  const dk = writeRows("dk", node, { output: 1 }, indirect);
  const dv = writeRows("dv", node, { output: 2 }, indirect + 1);
  const nearValues = tile.resident ? "near_v" : "near";
  const load = (near: string, operand: string): string =>
    loadNear(tile, near, operand, "key_line", "first", "keys", "0u");
  const weightAt = (i: number): string => `weights[${row(i)} * ${weightStride(tile)}u + c]`;
  return {
    label: `attention-backward keys ${rows}x${columns}${tile.resident ? "" : ` by ${4 * tile.chunk}`}`,
    bindings: [
      ...reads.map(({ binding }) => binding),
      words("sums", { input: 4 }, "read"),
      deltas.binding,
      dk.binding,
      dv.binding,
    ],
    workgroupSize: tile.rowLanes * tile.columnLanes,
    groups: lines * tiles,
    code: wgsl`
      var<private> never: u32 = 0u;
      ${reads.map(({ code }) => code)}
      ${dk.code}
      ${dv.code}
      ${seenBy(node)}
      ${spans.code}
      ${tileMemory(tile, tile.resident ? ["near", "near_v"] : ["near"])}
      fn main(group: u32, lane: u32) {
        let line = group / sizes.tiles;
        let key_line = line * sizes.keys;
        ${spans.define(`line * ${group}u`, true)}
        let first = group % sizes.tiles * ${rows}u;
        ${declareCoordinates(tile)}
        ${
          tile.resident
            ? wgsl`
              ${load("near", "k")}
              ${load("near_v", "v")}
            `
            : ""
        }
        ${resultVariables(tile, "dk")}
        ${resultVariables(tile, "dv")}
        ${
          causal
            ? wgsl`
              // The first query that sees key j is j - start.
              let begin = u32(max(0, i32(first) - start)) / ${columns}u * ${columns}u;
            `
            : "let begin = 0u;"
        }
        let end = select(0u, sizes.queries, first < keys);
        for (var member = 0u; member < ${group}u; member++) {
          let query_line = (line * ${group}u + member) * sizes.queries;
          for (var q0 = begin; q0 < end; q0 += ${columns}u) {
            ${productOfRows(tile, "d", nearValues, keyRows("v", "first"), queryRows("g", "q0"))}
            ${productOfRows(tile, "s", "near", keyRows("k", "first"), queryRows("q", "q0"))}
            var seen = vec4<u32>();
            var sum = vec4<f32>();
            var delta_of = vec4<f32>();
            for (var n = 0u; n < 4u; n++) {
              let query = q0 + 4u * c + n;
              if (query < sizes.queries) {
                seen[n] = seen_by(query, keys, start);
                sum[n] = sums[query_line + query] * ${floatText(Math.LOG2E)};
                delta_of[n] = ${deltas.at("query_line + query")};
              }
            }
            ${eachRow(
              (i) => wgsl`
                let visible${i} = vec4<u32>(first + ${row(i)}) < seen;
                let p${i} = select(vec4<f32>(), exp2(s${i} * ${floatText(scale * Math.LOG2E)} - sum), visible${i});
                ${weightAt(i)} = select(vec4<f32>(), p${i} * (d${i} - delta_of), visible${i});
              `,
            )}
            ${
              tile.resident
                ? wgsl`
                  workgroupBarrier();
                  ${addFar(tile, "dk")}
                `
                : addWeighted(tile, "dk", queryRows("q", "q0"))
            }
            workgroupBarrier();
            ${eachRow((i) => `${weightAt(i)} = p${i};`)}
            ${addWeighted(tile, "dv", queryRows("g", "q0"))}
          }
        }
        ${storeResult(tile, "dk", "dk", "key_line", "first", "sizes.keys", () => floatText(scale))}
        ${storeResult(tile, "dv", "dv", "key_line", "first", "sizes.keys", () => "1.0")}
      }
    `,
    sizes: uniformSizes(node, tiles),
  };
};

/**
 * Computes the gradients of attention without a queries × keys matrix: δ per query, dq over query tiles, dk and dv over
 * key tiles. Each value is summed by one invocation in a fixed order, so results are bitwise reproducible. This order
 * computes scores and their gradients twice, which takes 14 · width flops per visible query-key pair instead of 10 ·
 * width.
 *
 * Source: Dao et al. 2022, arXiv 2205.14135, algorithm 4. The loop order of that algorithm needs atomics for dq; the
 * two passes here need no atomics.
 */
export const attentionBackward = (node: AttentionNode, facts: DeviceFacts): KernelPlan =>
  gradientPlan(node, (delta, indirect) => [
    deltaPass(node, delta),
    queryPass(node, facts, delta, indirect),
    keyPass(node, facts, delta, indirect + 1),
  ]);

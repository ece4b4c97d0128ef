import type { Graph } from "../graph/graph.ts";
import { operators } from "../ops/table.ts";
import { type InPlaceRule, mayTakeOver } from "./in-place.ts";
import type { Block, Blocks, StoredValue } from "./memory-blocks.ts";

/**
 * Returns a score for storing an output in the memory of a donated input. The score increases with the time of the
 * input's last read, and is highest if the output can be computed in place. `undefined` if the output cannot use the
 * input's memory.
 */
const suitability = (
  graph: Graph,
  blocks: Blocks,
  rule: InPlaceRule,
  donated: Block,
  output: Block,
): number | undefined => {
  if (donated.bytes !== output.bytes || donated.values.some((value) => value.kept)) return undefined;
  let latest = -1;
  for (const value of donated.values) {
    for (const read of value.reads) {
      latest = Math.max(latest, read.until);
      if (read.until < output.begin) continue;
      // The node that first writes the output also reads the input, so its kernel must be able to compute in place.
      const node = graph.nodes[output.begin]!;
      const opener = output.values.find(
        (other) =>
          other.node === node.id &&
          other.offset === 0 &&
          other.bytes === output.bytes &&
          blocks.values[node.id]!.includes(other),
      );
      const isWhole = value.offset === 0 && value.bytes === donated.bytes;
      if (read.by !== node.id || opener === undefined || !isWhole) return undefined;
      if (!mayTakeOver(graph, blocks, rule, node, read.input, opener.output)) return undefined;
      latest += ((operators[node.op]?.lastRead?.(node.params, read.input) ?? -1) + 1) / 1e6;
    }
  }
  return latest;
};

/**
 * Assigns the memory of donated inputs to graph outputs: as many as possible (a maximum matching), preferring the input
 * from which the output is computed. Sets `donated` of the outputs' blocks.
 *
 * @param outputs Blocks that become graph outputs.
 * @param donated Value of each donated input, except inputs that are also graph outputs.
 * @returns Indices of the assigned inputs.
 */
export const matchDonations = (
  graph: Graph,
  blocks: Blocks,
  rule: InPlaceRule,
  outputs: readonly Block[],
  donated: ReadonlyMap<number, StoredValue>,
): Set<number> => {
  const bySize = Map.groupBy(donated, ([, value]) => value.block.bytes);
  const candidates = new Map<Block, number[]>();
  for (const output of outputs) {
    const scored = (bySize.get(output.bytes) ?? []).flatMap(([index, value]) => {
      const score = output.bytes === 0 ? undefined : suitability(graph, blocks, rule, value.block, output);
      return score === undefined ? [] : [{ index, score }];
    });
    candidates.set(
      output,
      scored.sort((a, b) => b.score - a.score || a.index - b.index).map(({ index }) => index),
    );
  }
  const taker = new Map<number, Block>();
  const assign = (output: Block, tried: Set<number>): boolean => {
    for (const index of candidates.get(output)!) {
      if (tried.has(index)) continue;
      tried.add(index);
      const holder = taker.get(index);
      if (holder !== undefined && !assign(holder, tried)) continue;
      taker.set(index, output);
      return true;
    }
    return false;
  };
  for (const output of outputs) assign(output, new Set());
  for (const [index, output] of taker) output.donated = index;
  return new Set(taker.keys());
};

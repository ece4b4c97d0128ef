import type { Graph, Node } from "../graph/graph.ts";
import { type KernelNode, kernelNodeOf } from "../graph/kernel-node.ts";
import { operators } from "../ops/table.ts";
import { addTo, type Block, type Blocks, type StoredValue } from "./memory-blocks.ts";

/**
 * In-place rule: returns whether the kernel of a node may write output `output` over input `input`, provided that no
 * other node needs the input.
 */
export type InPlaceRule = (node: KernelNode, input: number, output: number) => boolean;

/** In-place rule that is valid for every kernel of an operator: `mayOverwrite` of the operator. */
export const standardInPlaceRule: InPlaceRule = (node, input, output) =>
  operators[node.op]?.mayOverwrite?.(node, input, output) ?? false;

const overlaps = (a: StoredValue, begin: number, bytes: number): boolean =>
  a.offset < begin + bytes && begin < a.offset + a.bytes;

/**
 * Whether output `output` of `node` may reuse the memory of input `input`: the sizes are equal, the kernel can compute
 * in place, and no other read of the input's bytes ends at `node` or later.
 */
export const mayTakeOver = (
  graph: Graph,
  { values }: Blocks,
  rule: InPlaceRule,
  node: Node,
  input: number,
  output: number,
): boolean => {
  const ref = node.inputs[input]!;
  const source = values[ref.node]![ref.output]!;
  if (source.bytes !== values[node.id]![output]!.bytes || source.bytes === 0) return false;
  if (!rule(kernelNodeOf(graph, node), input, output)) return false;
  return source.block.values.every((other) => {
    if (!overlaps(other, source.offset, source.bytes)) return true;
    if (other.node >= node.id || other.kept) return false;
    return other.reads.every((read) => (read.by === node.id ? read.input === input : read.until < node.id));
  });
};

/** Moves `result` and all values of its block into the memory of `source`. */
const moveInto = (source: StoredValue, result: StoredValue): void => {
  const [from, to] = [result.block, source.block];
  const shift = source.offset - result.offset; // a separate constant, because the first move changes result.offset
  for (const value of from.values) addTo(to, value, value.offset + shift);
  to.end = Math.max(to.end, from.end);
  if (from.output !== undefined) to.output = from.output;
};

/**
 * Whether the block of `result` may be moved into the memory of `source`. The answer also depends on the graph inputs
 * and outputs that own the memory of the two blocks.
 */
const fits = (source: StoredValue, result: StoredValue, writable: ReadonlySet<number>): boolean => {
  const [from, to]: [Block, Block] = [result.block, source.block];
  const isWhole = source.offset === 0 && to.bytes === source.bytes;
  if (from === to || (to.input !== undefined && !writable.has(to.input))) return false;
  if (from.output !== undefined)
    return isWhole && to.input === undefined && to.output === undefined && to.donated === undefined;
  // Reusing a part of a block extends the life of the whole block. Therefore, a part is reused only if the block
  // already lives long enough.
  return isWhole || from.end <= to.end;
};

/**
 * Places results in the memory of operands that are not read later: adds the result to the operand's block.
 *
 * @param writable Donated inputs whose memory is not assigned to an output.
 */
export const placeInPlace = (graph: Graph, blocks: Blocks, rule: InPlaceRule, writable: ReadonlySet<number>): void => {
  for (const node of graph.nodes) {
    const { role, joinsOperands } = operators[node.op] ?? {};
    // The operands of a node with `joinsOperands` are computed inside the result of the node.
    if (blocks.settled.has(node.id) || role === "argument" || joinsOperands !== undefined) continue;
    for (const [output, result] of blocks.values[node.id]!.entries()) {
      // Only a block that begins at this node may move; a block that reuses a donated input is already placed.
      const opens =
        result.block.begin === node.id &&
        result.offset === 0 &&
        result.bytes === result.block.bytes &&
        result.block.input === undefined;
      if (!opens || result.block.donated !== undefined) continue;
      const input = node.inputs.findIndex(
        (ref, i) =>
          fits(blocks.values[ref.node]![ref.output]!, result, writable) &&
          mayTakeOver(graph, blocks, rule, node, i, output),
      );
      if (input === -1) continue;
      const ref = node.inputs[input]!;
      moveInto(blocks.values[ref.node]![ref.output]!, result);
    }
  }
};

import { bytesPerElement } from "../dtype.ts";
import { type Graph, type Node, specOf } from "../graph/graph.ts";
import type { FusedParams } from "../ops/fused.ts";
import { elementCount, rowMajorStrides, type TensorSpec } from "../shape.ts";
import { addTo, type Block, type Blocks, type StoredValue } from "./memory-blocks.ts";

/** Whether the kernel of a node may write output `output` over its input `input`, when nobody else needs that input. */
export type InPlaceRule = (node: Node, input: number, output: number, inputSpec: TensorSpec) => boolean;

/** The last instruction that reads an input of a fused node. Folds come after all of them. */
const lastRead = ({ instructions, results, folds = [] }: FusedParams, input: number): number =>
  folds.some((fold, i) => fold !== null && results[i] === input)
    ? Infinity
    : instructions.findLastIndex(({ args }) => args.includes(input));

const writesAfterReading = (node: Node, input: number, output: number): boolean => {
  const params = node.params as unknown as FusedParams;
  return lastRead(params, input) <= params.results[output]! - params.views.length;
};

/**
 * What any kernel can do: a fused node over an input of the same size that it reads densely, an all-reduce (see
 * `CollectiveRequest`), and a scatter-add onto its base.
 */
export const standardInPlaceRule: InPlaceRule = (node, input, output, inputSpec) => {
  switch (node.op) {
    case "fused": {
      const { shape, views, folds } = node.params as unknown as FusedParams;
      const dense = rowMajorStrides(shape);
      const outputSpec = node.specs[output]!;
      return (
        (folds?.[output] ?? null) === null &&
        bytesPerElement[inputSpec.dtype] === bytesPerElement[outputSpec.dtype] &&
        elementCount(inputSpec.shape) === elementCount(outputSpec.shape) &&
        views[input]!.strides.every((stride, dim) => shape[dim] === 1 || stride === dense[dim])
      );
    }
    case "collective-start":
      return node.params["collective"] === "all-reduce";
    case "scatter-add":
      return input === 0;
    default:
      return false;
  }
};

const overlaps = (a: StoredValue, begin: number, bytes: number): boolean => a.offset < begin + bytes && begin < a.offset + a.bytes;

/**
 * Whether output `output` of `node` may take the memory of input `input`: the kernel can, and nobody else needs those bytes
 * then or later. For fused nodes an input must also be read for the last time before the result is written, so that a kernel may
 * read operands where they lie and write results at once.
 */
export const mayTakeOver = (graph: Graph, { values }: Blocks, rule: InPlaceRule, node: Node, input: number, output: number): boolean => {
  const ref = node.inputs[input]!;
  const source = values[ref.node]![ref.output]!;
  if (source.bytes !== values[node.id]![output]!.bytes || source.bytes === 0) return false;
  if (!rule(node, input, output, specOf(graph, ref)) || (node.op === "fused" && !writesAfterReading(node, input, output))) return false;
  return source.block.values.every((other) => {
    if (!overlaps(other, source.offset, source.bytes)) return true;
    if (other.node >= node.id || other.kept) return false;
    return other.reads.every((read) => (read.by === node.id ? read.input === input : read.until < node.id));
  });
};

/** Let `result` and all that shares its block lie in the memory of `source` from now on. */
const moveInto = (source: StoredValue, result: StoredValue): void => {
  const [from, to] = [result.block, source.block];
  const shift = source.offset - result.offset; // fixed before the first move, which changes result.offset
  for (const value of from.values) addTo(to, value, value.offset + shift);
  to.end = Math.max(to.end, from.end);
  if (from.output !== undefined) to.output = from.output;
};

/** Whether the memory of `source` may become that of `result`'s block, as far as ownership goes. */
const fits = (source: StoredValue, result: StoredValue, writable: ReadonlySet<number>): boolean => {
  const [from, to]: [Block, Block] = [result.block, source.block];
  const isWhole = source.offset === 0 && to.bytes === source.bytes;
  if (from === to || (to.input !== undefined && !writable.has(to.input))) return false;
  if (from.output !== undefined) return isWhole && to.input === undefined && to.output === undefined && to.donated === undefined;
  // A part of a block keeps the whole block alive, so it may serve only as long as that lives anyway.
  return isWhole || from.end <= to.end;
};

/**
 * Compute in place wherever an operand dies: the result joins the operand's block.
 *
 * @param writable donated inputs whose memory no output has taken.
 */
export const placeInPlace = (graph: Graph, blocks: Blocks, rule: InPlaceRule, writable: ReadonlySet<number>): void => {
  for (const node of graph.nodes) {
    if (blocks.settled.has(node.id) || node.op === "input") continue;
    for (const [output, result] of blocks.values[node.id]!.entries()) {
      // Only a block that this very node opens may move; one that takes over a donated input has its place.
      const opens =
        result.block.begin === node.id && result.offset === 0 && result.bytes === result.block.bytes && result.block.input === undefined;
      if (!opens || result.block.donated !== undefined || node.op === "concat") continue;
      const input = node.inputs.findIndex(
        (ref, i) => fits(blocks.values[ref.node]![ref.output]!, result, writable) && mayTakeOver(graph, blocks, rule, node, i, output),
      );
      if (input === -1) continue;
      const ref = node.inputs[input]!;
      moveInto(blocks.values[ref.node]![ref.output]!, result);
    }
  }
};

import { InvariantError } from "../errors.ts";
import { type Graph, valueKey } from "../graph/graph.ts";
import { matchDonations } from "./donation.ts";
import { type InPlaceRule, placeInPlace, standardInPlaceRule } from "./in-place.ts";
import { type Block, shareMemory, type StoredValue } from "./memory-blocks.ts";
import { maxAlive, packIntervals } from "./pack-intervals.ts";

/**
 * Memory location of a value: slab `index` of the workspace, the memory of graph input `index`, or new memory for graph
 * output `index`.
 */
export interface Place {
  readonly region: "workspace" | "input" | "output";
  /** Index of the workspace slab, graph input or graph output. */
  readonly index: number;
  /** Byte offset in the slab, input or output. */
  readonly offset: number;
}

/** Copy that runs after the last node. Sources and targets of copies never overlap. */
export interface PlanCopy {
  readonly from: Place;
  readonly to: Place;
  readonly bytes: number;
}

/** Fixed memory locations of all values of a graph. Plain data, created once per compilation. */
export interface MemoryPlan {
  readonly workspaceBytes: number;
  /** Size of each workspace slab, bytes. One slab, unless `maxSlabBytes` requires several. */
  readonly slabBytes: readonly number[];
  /** Maximum number of workspace bytes alive at one time: a lower bound for any plan with the same blocks. */
  readonly lowerBoundBytes: number;
  /** Location of each value by `valueKey`. */
  readonly places: ReadonlyMap<string, Place>;
  /** Location of each graph output after the run and the `copies`: new memory, or the start of a donated input. */
  readonly outputs: readonly Place[];
  /** Size of each graph output in bytes, rounded up to `viewAlignment`. */
  readonly outputBytes: readonly number[];
  /** Copies for graph outputs that are also inputs, are parts of larger blocks, or are returned twice. */
  readonly copies: readonly PlanCopy[];
  /**
   * Ids of nodes that need no kernel, because their results are already in memory: views, and `concat` nodes whose
   * operands are all in place.
   */
  readonly settled: ReadonlySet<number>;
  /**
   * For each `concat` node with a contiguous result, whether each operand is already in place. The kernel copies the
   * remaining operands.
   */
  readonly placedOperands: ReadonlyMap<number, readonly boolean[]>;
}

export interface MemoryPlanOptions {
  /**
   * Indices of donated inputs, whose memory may be overwritten and may become the memory of an output. Default: none.
   */
  readonly donate?: readonly number[];
  /**
   * Alignment of blocks in the workspace, bytes: a multiple of `viewAlignment`. Default: 64, a cache line, or
   * `viewAlignment` if that is larger.
   */
  readonly alignment?: number;
  /** Maximum size of a slab of the workspace, bytes. A larger value is stored in a separate slab. Default: no limit. */
  readonly maxSlabBytes?: number;
  /**
   * Alignment, in bytes, of a view inside its operand and of an operand inside a `concat` result. Unaligned views and
   * operands are copied. Sizes are rounded up to this alignment. Default: 1.
   */
  readonly viewAlignment?: number;
  /** Rule for computing in place. Default: `standardInPlaceRule`. */
  readonly inPlace?: InPlaceRule;
}

/**
 * Assigns each graph output to the block that it fills. Returns the indices of outputs that must be copied after the
 * last node.
 */
const claimOutputs = (outputs: readonly StoredValue[], donated: ReadonlySet<number>): Set<number> => {
  const copied = new Set<number>();
  const returned = new Set<Block>();
  outputs.forEach((value, index) => {
    value.kept = true;
    const { block } = value;
    const fills = value.offset === 0 && value.bytes === block.bytes;
    if (!fills || returned.has(block) || (block.input !== undefined && !donated.has(block.input))) {
      copied.add(index);
      return;
    }
    returned.add(block);
    if (block.input === undefined) block.output = index;
  });
  return copied;
};

/**
 * Assigns a fixed location to every value of a graph, before the first run.
 *
 * - Views (reshape, bitcast, contiguous slice, identity, `collective-done`) share the memory of their operand; operands
 *   of a contiguous `concat` are computed inside the result of the `concat`, so gradient buckets are sent and read
 *   without a copy.
 * - A result is computed in place if its operand is not read later; the memory of operands and results of a collective
 *   is not reused until the collective is done.
 * - Outputs reuse donated inputs of the same size; inputs that are not donated are never written.
 * - All other blocks are packed into one workspace by liveness.
 *
 * Cost: O(nodes + edges) and O(blocks²) for the packing.
 * @example
 * ```ts
 * const { graph } = trace((x: Tensor) => sum(square(x)), [{ dtype: "f32", shape: [1024] }]);
 * console.log(planMemory(graph).workspaceBytes); // 4096
 * ```
 */
export const planMemory = (
  graph: Graph,
  {
    donate = [],
    maxSlabBytes = Infinity,
    viewAlignment = 1,
    alignment = Math.max(64, viewAlignment),
    inPlace = standardInPlaceRule,
  }: MemoryPlanOptions = {},
): MemoryPlan => {
  if (alignment % viewAlignment !== 0)
    throw new InvariantError(
      `blocks are aligned to ${alignment} bytes and views in blocks to ${viewAlignment}; the alignment of blocks must be a multiple of that of views`,
    );
  const blocks = shareMemory(graph, viewAlignment);
  const inputs = graph.inputs.map((id) => blocks.values[id]![0]!);
  const outputs = graph.outputs.map((ref) => blocks.values[ref.node]![ref.output]!);
  const writable = new Set(donate);
  const copied = claimOutputs(outputs, writable);
  for (const value of outputs) value.block.end = graph.nodes.length;

  const free = new Map(
    [...writable]
      .filter((index) => !inputs[index]!.block.values.some((value) => value.kept))
      .map((index) => [index, inputs[index]!]),
  );
  const owned = [...new Set(outputs.map((value) => value.block))].filter((block) => block.output !== undefined);
  const assigned = matchDonations(graph, blocks, inPlace, owned, free);
  placeInPlace(graph, blocks, inPlace, new Set(donate.filter((index) => !assigned.has(index))));

  const all = new Set(blocks.values.flat().map((value) => value.block));
  const inWorkspace = [...all].filter((block) => block.input === undefined && block.output === undefined);
  const packing = packIntervals(inWorkspace, alignment, maxSlabBytes);
  const begins = new Map<Block, Place>();
  inWorkspace.forEach((block, i) =>
    begins.set(block, { region: "workspace", index: packing.slabs[i]!, offset: packing.offsets[i]! }),
  );
  for (const block of all) {
    if (block.donated !== undefined) begins.set(block, { region: "input", index: block.donated, offset: 0 });
    else if (block.output !== undefined) begins.set(block, { region: "output", index: block.output, offset: 0 });
    else if (block.input !== undefined) begins.set(block, { region: "input", index: block.input, offset: 0 });
  }
  const placeOf = (value: StoredValue): Place => {
    const begin = begins.get(value.block)!;
    return { ...begin, offset: begin.offset + value.offset };
  };

  const places = new Map(blocks.values.flat().map((value) => [valueKey(value), placeOf(value)] as const));
  const finalPlaces = outputs.map(
    (value, index): Place => (copied.has(index) ? { region: "output", index, offset: 0 } : placeOf(value)),
  );
  return {
    workspaceBytes: packing.slabBytes.reduce((sum, bytes) => sum + bytes, 0),
    slabBytes: packing.slabBytes,
    lowerBoundBytes: maxAlive(inWorkspace, alignment),
    places,
    outputs: finalPlaces,
    outputBytes: outputs.map((value) => value.bytes),
    copies: [...copied].map((index) => ({
      from: placeOf(outputs[index]!),
      to: finalPlaces[index]!,
      bytes: outputs[index]!.bytes,
    })),
    settled: blocks.settled,
    placedOperands: blocks.placedOperands,
  };
};

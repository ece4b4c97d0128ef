import type { Graph } from "../graph/graph.ts";
import { kernelNodeOf } from "../graph/kernel-node.ts";
import { roleOf } from "../ops/role.ts";
import { operators } from "../ops/table.ts";
import { byteLength } from "../shape.ts";

/**
 * One read of a value. Node `by` begins to read the value, which is input number `input` of the node. The read is
 * complete after node `until`.
 */
export interface Read {
  readonly by: number;
  readonly input: number;
  readonly until: number;
}

/** Value of the graph and its location in a block. */
export interface StoredValue {
  readonly node: number;
  readonly output: number;
  /** Total size of the elements in bytes, not rounded. A value and a view of all its elements have equal sizes. */
  readonly exactBytes: number;
  /**
   * Size in bytes, rounded up to the view alignment. A kernel may write a full vector at the end of the value, so the
   * padding must not contain another value when this value is written.
   */
  readonly bytes: number;
  readonly reads: Read[];
  /**
   * Whether the value must stay in memory after the last node, because it is a graph output or the source of a copied
   * output.
   */
  kept: boolean;
  block: Block;
  offset: number;
}

/**
 * Contiguous memory of values that share bytes: a value and its views, a `concat` result and its operands, or a chain
 * of values computed in place.
 */
export interface Block {
  readonly bytes: number;
  /** Index of the graph input that owns the memory. Absent: not the memory of an input. */
  readonly input?: number;
  readonly values: StoredValue[];
  /** Id of the first node that writes the block. The field `end` is the id of the last node that uses the block. */
  begin: number;
  end: number;
  /** Index of the graph output that is stored in the block. Absent: not an output. */
  output?: number;
  /** Index of the donated input whose memory the block uses. Absent: not the memory of a donated input. */
  donated?: number;
}

export interface Blocks {
  /** Stored values by node id and output index. */
  readonly values: readonly (readonly StoredValue[])[];
  /** For each `concat` node, whether each operand is computed at its position in the result and needs no copy. */
  readonly placedOperands: ReadonlyMap<number, readonly boolean[]>;
  /** Ids of nodes that need no kernel, because their results are already in memory. */
  readonly settled: ReadonlySet<number>;
}

/**
 * Returns for each node the id of the last node during which the operands must stay unchanged: the node itself, or for
 * a collective its done node.
 */
const readsUntil = (graph: Graph): number[] => {
  const until = graph.nodes.map((node) => (roleOf(node) === "start" ? -1 : node.id));
  for (const node of graph.nodes)
    if (roleOf(node) === "done") for (const ref of node.inputs) until[ref.node] = Math.max(until[ref.node]!, node.id);
  return until.map((last) => (last === -1 ? graph.nodes.length : last));
};

/**
 * Assigns values with the same bytes to shared memory: a value and its views, and the operands of a `concat` with a
 * contiguous result, which are computed at their positions in the result. Exception: an operand of `concat` that is a
 * graph input, a part of another value, or already placed in another `concat` is copied by the kernel.
 */
export const shareMemory = (graph: Graph, viewAlignment: number): Blocks => {
  const until = readsUntil(graph);
  // For each value that is stored inside another value, the containing value: the operand of a view, or the `concat`
  // result for an operand computed in place.
  const wholes = new Map<StoredValue, { readonly whole: StoredValue; readonly offset: number }>();
  const isView = new Set<StoredValue>();
  const placedOperands = new Map<number, readonly boolean[]>();
  const settled = new Set<number>();
  const none: Block = { bytes: 0, values: [], begin: 0, end: 0 };
  const values = graph.nodes.map((node) =>
    node.specs.map(
      (spec, output): StoredValue => ({
        node: node.id,
        output,
        exactBytes: byteLength(spec),
        bytes: Math.ceil(byteLength(spec) / viewAlignment) * viewAlignment,
        reads: [],
        kept: false,
        block: none,
        offset: 0,
      }),
    ),
  );

  for (const node of graph.nodes) {
    const operands = node.inputs.map((ref) => values[ref.node]![ref.output]!);
    operands.forEach((value, input) => value.reads.push({ by: node.id, input, until: until[node.id]! }));
    const seen = kernelNodeOf(graph, node);
    const { viewOffset, joinsOperands } = operators[node.op] ?? {};
    const offset = viewOffset?.(seen);
    if (offset !== undefined && offset % viewAlignment === 0) {
      values[node.id]!.forEach((value, output) => {
        wholes.set(value, { whole: operands[output]!, offset });
        isView.add(value);
      });
      settled.add(node.id);
    }
    if (joinsOperands?.(seen) === true) {
      let end = 0;
      const placed = operands.map((operand) => {
        const begin = end;
        end += operand.exactBytes;
        // A view of a whole value is equivalent to the value. A view of a part of a value cannot be moved separately.
        let source = operand;
        while (isView.has(source) && wholes.get(source)!.whole.exactBytes === operand.exactBytes)
          source = wholes.get(source)!.whole;
        if (begin % viewAlignment !== 0 || wholes.has(source) || roleOf(graph.nodes[source.node]!) === "argument")
          return false;
        wholes.set(source, { whole: values[node.id]![0]!, offset: begin });
        return true;
      });
      placedOperands.set(node.id, placed);
      if (placed.every((inPlace) => inPlace)) settled.add(node.id);
    }
  }

  const inputIndex = new Map(graph.inputs.map((id, index) => [id, index]));
  for (const value of values.flat()) {
    let [root, offset] = [value, 0];
    for (let part = wholes.get(root); part !== undefined; part = wholes.get(root)) {
      offset += part.offset;
      root = part.whole;
    }
    if (root.block === none) {
      const input = inputIndex.get(root.node);
      root.block = {
        bytes: root.bytes,
        values: [],
        begin: root.node,
        end: root.node,
        ...(input !== undefined && { input }),
      };
    }
    addTo(root.block, value, offset);
  }
  return { values, placedOperands, settled };
};

/** Adds a value to a block at a byte offset. */
export const addTo = (block: Block, value: StoredValue, offset: number): void => {
  value.block = block;
  value.offset = offset;
  block.values.push(value);
  block.begin = Math.min(block.begin, value.node);
  block.end = value.reads.reduce((end, read) => Math.max(end, read.until), Math.max(block.end, value.node));
};

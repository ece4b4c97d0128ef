import type { Graph } from "../graph/graph.ts";
import { kernelNodeOf } from "../graph/kernel-node.ts";
import { roleOf } from "../ops/role.ts";
import { operators } from "../ops/table.ts";
import { byteLength } from "../shape.ts";

/** A use of a value: node `by` begins to read the value as its input `input`, and has finished after node `until`. */
export interface Read {
  readonly by: number;
  readonly input: number;
  readonly until: number;
}

/** A value of the graph and its position in a block. */
export interface StoredValue {
  readonly node: number;
  readonly output: number;
  /** Size of the elements in bytes. Values that share memory as views must be equal in it. */
  readonly exactBytes: number;
  /**
   * Size rounded up to the alignment of views, so that a kernel may write a full last vector: these bytes must be free
   * of other values when the value is written.
   */
  readonly bytes: number;
  readonly reads: Read[];
  /** Whether the value lives past the last node: it is a graph output, or the source of one. */
  kept: boolean;
  block: Block;
  offset: number;
}

/**
 * Contiguous bytes: a value with its views, a `concat` result with its operands, or a chain of values computed in
 * place.
 */
export interface Block {
  readonly bytes: number;
  /** Graph input that owns the memory. */
  readonly input?: number;
  readonly values: StoredValue[];
  /** Node that first writes the block, and node that last uses it. */
  begin: number;
  end: number;
  /** Graph output that the memory becomes. */
  output?: number;
  /** Donated input that the memory is taken from. */
  donated?: number;
}

export interface Blocks {
  /** Per node, per output. */
  readonly values: readonly (readonly StoredValue[])[];
  /** Per `concat` node: whether each operand is computed at its position in the result, so that no copy is needed. */
  readonly placedOperands: ReadonlyMap<number, readonly boolean[]>;
  /** Nodes whose results are already in place and need no kernel. */
  readonly settled: ReadonlySet<number>;
}

/** Last node until which the memory that a node reads must stay unchanged: a collective reads until it is done. */
const readsUntil = (graph: Graph): number[] => {
  const until = graph.nodes.map((node) => (roleOf(node) === "start" ? -1 : node.id));
  for (const node of graph.nodes)
    if (roleOf(node) === "done") for (const ref of node.inputs) until[ref.node] = Math.max(until[ref.node]!, node.id);
  return until.map((last) => (last === -1 ? graph.nodes.length : last));
};

/**
 * Decide which values share memory because they have the same bytes: views of one value, and the operands of a `concat`
 * with a contiguous result, which are computed at their positions in the result. An operand is copied by the kernel
 * instead if it is a graph input, a part of another value, or already placed in another `concat`.
 */
export const shareMemory = (graph: Graph, viewAlignment: number): Blocks => {
  const until = readsUntil(graph);
  // Value that contains a value: the operand of a view, or the result of the concat that it is computed into.
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
        // A view of a whole value is equivalent to that value; a view of a part cannot move alone.
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

/** Add a value to a block. */
export const addTo = (block: Block, value: StoredValue, offset: number): void => {
  value.block = block;
  value.offset = offset;
  block.values.push(value);
  block.begin = Math.min(block.begin, value.node);
  block.end = value.reads.reduce((end, read) => Math.max(end, read.until), Math.max(block.end, value.node));
};

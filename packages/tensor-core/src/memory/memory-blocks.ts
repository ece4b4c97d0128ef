import type { Graph } from "../graph/graph.ts";
import { kernelNodeOf } from "../graph/kernel-node.ts";
import { roleOf } from "../ops/role.ts";
import { operators } from "../ops/table.ts";
import { byteLength } from "../shape.ts";

/** A use of a value: node `by` begins to read it (as its input `input`) and leaves it alone after node `until`. */
export interface Read {
  readonly by: number;
  readonly input: number;
  readonly until: number;
}

/** One value of the graph and where it lies in its block. */
export interface StoredValue {
  readonly node: number;
  readonly output: number;
  /** What its elements take up. Only values that are equal in this are the same bytes. */
  readonly exactBytes: number;
  /**
   * Rounded up to the alignment of views, so that a kernel may write a last vector in full: what must be free of other
   * values when it is written.
   */
  readonly bytes: number;
  readonly reads: Read[];
  /** Lives past the last node: it is a graph output, or the source of one. */
  kept: boolean;
  block: Block;
  offset: number;
}

/**
 * Bytes that lie together: one value with its views, the operands of a `concat` with the result, or a chain of values
 * in place.
 */
export interface Block {
  readonly bytes: number;
  /** The graph input whose memory this is. */
  readonly input?: number;
  readonly values: StoredValue[];
  /** Node that first writes it, and node that last uses it. */
  begin: number;
  end: number;
  /** The graph output whose memory this becomes. */
  output?: number;
  /** The donated input whose memory this takes over. */
  donated?: number;
}

export interface Blocks {
  /** Per node, per output. */
  readonly values: readonly (readonly StoredValue[])[];
  /** Per `concat` node: which operands are computed into their places, so that nothing is left to copy. */
  readonly placedOperands: ReadonlyMap<number, readonly boolean[]>;
  /** Nodes whose results lie in place without any work. */
  readonly settled: ReadonlySet<number>;
}

/** Until when the memory that a node reads must stay as it is: a collective reads until it is done. */
const readsUntil = (graph: Graph): number[] => {
  const until = graph.nodes.map((node) => (roleOf(node) === "start" ? -1 : node.id));
  for (const node of graph.nodes)
    if (roleOf(node) === "done") for (const ref of node.inputs) until[ref.node] = Math.max(until[ref.node]!, node.id);
  return until.map((last) => (last === -1 ? graph.nodes.length : last));
};

/**
 * Decide which values share memory because they are the same bytes: views of one value, and the operands of a `concat`
 * whose result is one run of memory after another, which are computed where they belong. An operand stays out, and is
 * copied by the kernel, when it is a graph input, a part of another value, or already lies in another `concat`.
 */
export const shareMemory = (graph: Graph, viewAlignment: number): Blocks => {
  const until = readsUntil(graph);
  // What a value is a part of: the operand of a view, or the result of the concat that it is computed into.
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
        // A view of all of a value is that value; a view of a part cannot move without the rest.
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

/** Put a value into a block. */
export const addTo = (block: Block, value: StoredValue, offset: number): void => {
  value.block = block;
  value.offset = offset;
  block.values.push(value);
  block.begin = Math.min(block.begin, value.node);
  block.end = value.reads.reduce((end, read) => Math.max(end, read.until), Math.max(block.end, value.node));
};

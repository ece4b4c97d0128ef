import type { TensorSpec } from "../shape.ts";

/** Plain, serializable operator parameters. */
export type ParamValue =
  | number
  | string
  | boolean
  | null
  | readonly ParamValue[]
  | { readonly [key: string]: ParamValue };

/** Parameters of a node, stored in the graph as plain data. */
export type Params = { readonly [key: string]: ParamValue };

/**
 * Encodes a number as a parameter: numbers that JSON cannot represent (-0, NaN, infinities) become strings, and
 * `Number()` decodes both forms.
 */
export const encodeNumber = (value: number): number | string =>
  Object.is(value, -0) ? "-0" : Number.isFinite(value) ? value : String(value);

/** Reference to a value: output `output` of node `node`. */
export interface ValueRef {
  readonly node: number;
  readonly output: number;
}

/** Phases of a training step, in execution order. */
export const phases = ["forward", "backward", "communication", "update"] as const;

/**
 * Phase of a training step in which a node was emitted. `forward`: nodes of a traced function. `backward`: nodes that
 * differentiation adds. `communication`: exchange of gradients, including encoding and decoding. `update`: the
 * optimizer.
 */
export type Phase = (typeof phases)[number];

/**
 * Origin of a node: model part, phase and checkpoint regions in which the node was emitted. Passes that replace a node
 * copy the origin to the new nodes.
 */
export interface Origin {
  /** Path of the model part that emitted the node. */
  readonly scope: string;
  readonly phase: Phase;
  /**
   * Path of the enclosing `checkpoint` regions, which are numbered in the order of the trace; empty outside of all
   * regions.
   */
  readonly region: string;
}

/** Node of a graph: one application of an operator. `specs` has the dtype and shape of each output. */
export interface Node extends Origin {
  readonly id: number;
  readonly op: string;
  readonly inputs: readonly ValueRef[];
  readonly params: Params;
  readonly specs: readonly TensorSpec[];
}

/** Origin of nodes that do not belong to a model part, such as arguments. */
export const ownOrigin: Origin = { scope: "", phase: "forward", region: "" };

export const originOf = ({ scope, phase, region }: Node): Origin => ({ scope, phase, region });

/**
 * Returns the later of two phases. If a pass replaces several nodes by one node, the new node has the latest of their
 * phases, because the new node cannot run before the last of these nodes could run.
 */
export const laterPhase = (a: Phase, b: Phase): Phase => (phases.indexOf(a) < phases.indexOf(b) ? b : a);

/**
 * Key of the only part of a graph that is not data: the definitions of users' operators, see `definitions.ts`. JSON and
 * structured clones omit symbols, so a graph can still be saved and posted.
 */
export const definitionsKey: unique symbol = Symbol("definitions");

/**
 * Computation graph as plain data. Invariants: `nodes[i].id === i`; every input refers to an earlier node; each entry
 * of `inputs` is the id of a node with op `input`, in argument order.
 */
export interface Graph {
  readonly nodes: readonly Node[];
  readonly inputs: readonly number[];
  readonly outputs: readonly ValueRef[];
  readonly [definitionsKey]?: object;
}

/**
 * Returns `graph` with the operator definitions of `source` if `graph` has none. For passes that create a new graph.
 */
export const keepDefinitions = (source: Graph, graph: Graph): Graph =>
  source[definitionsKey] === undefined || graph[definitionsKey] !== undefined
    ? graph
    : { ...graph, [definitionsKey]: source[definitionsKey] };

/** Returns the dtype and shape of a value of the graph. */
export const specOf = (graph: Graph, ref: ValueRef): TensorSpec => graph.nodes[ref.node]!.specs[ref.output]!;

/** Returns the key of a value in maps and sets. */
export const valueKey = (ref: ValueRef): string => `${ref.node}:${ref.output}`;

/**
 * Builder of a new graph from an old graph. Call `map` once to assign a new value to an old value, then `resolve` to
 * look up the new value. All passes renumber nodes with this class.
 */
export class GraphBuilder {
  readonly nodes: Node[] = [];
  /** New value of each output, by the id of the old node and the output index. */
  private readonly moved: ValueRef[][] = [];

  /** Appends a node. Returns the node's id. */
  add(node: Omit<Node, "id">): number {
    const id = this.nodes.length;
    this.nodes.push({ ...node, id });
    return id;
  }

  /** Appends an old node with resolved inputs, and maps all outputs of the node. Returns the new id. */
  copy(node: Node): number {
    const id = this.add({ ...node, inputs: node.inputs.map((ref) => this.resolve(ref)) });
    node.specs.forEach((_, output) => this.map({ node: node.id, output }, { node: id, output }));
    return id;
  }

  map(old: ValueRef, now: ValueRef): void {
    (this.moved[old.node] ??= [])[old.output] = now;
  }

  resolve(old: ValueRef): ValueRef {
    const now = this.moved[old.node]?.[old.output];
    if (now === undefined) throw new RangeError(`value ${valueKey(old)} was read before it was mapped`);
    return now;
  }

  finish(old: Graph): Graph {
    return keepDefinitions(old, {
      nodes: this.nodes,
      inputs: old.inputs.map((id) => this.resolve({ node: id, output: 0 }).node),
      outputs: old.outputs.map((ref) => this.resolve(ref)),
    });
  }
}

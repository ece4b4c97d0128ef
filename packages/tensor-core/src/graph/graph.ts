import type { TensorSpec } from "../shape.ts";

/** Plain, serializable operator parameters. */
export type ParamValue =
  | number
  | string
  | boolean
  | null
  | readonly ParamValue[]
  | { readonly [key: string]: ParamValue };

/** Parameters of a node: plain data, a part of the graph. */
export type Params = { readonly [key: string]: ParamValue };

/**
 * Encode a number as a parameter: numbers that JSON cannot represent (-0, NaN, infinities) become strings, and
 * `Number()` decodes both forms.
 */
export const encodeNumber = (value: number): number | string =>
  Object.is(value, -0) ? "-0" : Number.isFinite(value) ? value : String(value);

/** Output `output` of node `node`. */
export interface ValueRef {
  readonly node: number;
  readonly output: number;
}

/** Phases of a training step, in execution order. */
export const phases = ["forward", "backward", "communication", "update"] as const;

/**
 * Phase of a step in which a node was emitted. `forward`: nodes of a traced function. `backward`: nodes that
 * differentiation adds. `communication`: exchange of gradients, including encoding and decoding. `update`: the
 * optimizer.
 */
export type Phase = (typeof phases)[number];

/** Origin of a node. Nodes that passes insert in its place keep the origin. */
export interface Origin {
  /** Path of the model part that emitted the node. */
  readonly scope: string;
  readonly phase: Phase;
  /** Path of the enclosing `checkpoint` regions, by their numbers in the trace; empty outside of all regions. */
  readonly region: string;
}

/** One operator application. `specs` describes each output. */
export interface Node extends Origin {
  readonly id: number;
  readonly op: string;
  readonly inputs: readonly ValueRef[];
  readonly params: Params;
  readonly specs: readonly TensorSpec[];
}

/** Origin of nodes that no part of a model emitted: arguments. */
export const ownOrigin: Origin = { scope: "", phase: "forward", region: "" };

export const originOf = ({ scope, phase, region }: Node): Origin => ({ scope, phase, region });

/** The later of two phases: a merged node runs when the last of its parts can run. */
export const laterPhase = (a: Phase, b: Phase): Phase => (phases.indexOf(a) < phases.indexOf(b) ? b : a);

/**
 * Key of the only part of a graph that is not data: the definitions of users' operators, see `definitions.ts`. JSON and
 * structured clones omit symbols, so a graph can still be saved and posted.
 */
export const definitionsKey: unique symbol = Symbol("definitions");

/**
 * A whole computation as plain data. Invariants: `nodes[i].id === i`; every input refers to an earlier node; each entry
 * of `inputs` is the id of a node with op `input`, in argument order.
 */
export interface Graph {
  readonly nodes: readonly Node[];
  readonly inputs: readonly number[];
  readonly outputs: readonly ValueRef[];
  readonly [definitionsKey]?: object;
}

/** `graph` with the definitions of `source`, unless it has its own; for passes that create a new graph. */
export const keepDefinitions = (source: Graph, graph: Graph): Graph =>
  source[definitionsKey] === undefined || graph[definitionsKey] !== undefined
    ? graph
    : { ...graph, [definitionsKey]: source[definitionsKey] };

/** Dtype and shape of a value of the graph. */
export const specOf = (graph: Graph, ref: ValueRef): TensorSpec => graph.nodes[ref.node]!.specs[ref.output]!;

/** Key of a value, for maps and sets. */
export const valueKey = (ref: ValueRef): string => `${ref.node}:${ref.output}`;

/**
 * Builds a graph node by node while an old graph is read: `map` an old value once, `resolve` it later. Passes use the
 * builder, so that nodes are renumbered in one place only.
 */
export class GraphBuilder {
  readonly nodes: Node[] = [];
  /** New value of each old node, per output. */
  private readonly moved: ValueRef[][] = [];

  /** Append a node; returns its id. */
  add(node: Omit<Node, "id">): number {
    const id = this.nodes.length;
    this.nodes.push({ ...node, id });
    return id;
  }

  /** Append an old node with its inputs resolved, and map all of its outputs. */
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

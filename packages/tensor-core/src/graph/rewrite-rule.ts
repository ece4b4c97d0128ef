import type { TensorSpec } from "../shape.ts";
import type { Node, Params, ValueRef } from "./graph.ts";

/** What a rewrite rule sees: the graph built so far, and a way to add to it. */
export interface RewriteContext {
  /** The node that computes a value. */
  readonly producer: (ref: ValueRef) => Node;
  readonly spec: (ref: ValueRef) => TensorSpec;
  /**
   * Add a node like `from` over other operands, itself rewritten by the rules: the same operator with all of its
   * params, but for those in `changes`.
   */
  readonly derive: (from: Pick<Node, "op" | "params">, inputs: readonly ValueRef[], changes?: Params) => ValueRef;
  /**
   * Add a node with one output, itself rewritten by the rules. Not of the operator that is replaced: that is for
   * `derive`, so that no rule can drop a param that it does not know.
   */
  readonly emit: (op: string, inputs: readonly ValueRef[], params?: Params) => ValueRef;
  /** A constant of the given spec. */
  readonly constant: (spec: TensorSpec, value: number) => ValueRef;
  /** The value of a constant, `undefined` for anything else. */
  readonly constantValue: (ref: ValueRef) => number | undefined;
}

/** Replace a node with one output by an equal value of the same dtype and shape, or return `undefined` to leave it. */
export type RewriteRule<P extends Params = Params> = (
  node: Node & { readonly params: P },
  context: RewriteContext,
) => ValueRef | undefined;

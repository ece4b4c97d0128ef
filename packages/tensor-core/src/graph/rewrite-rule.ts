import type { TensorSpec } from "../shape.ts";
import type { Node, Params, ValueRef } from "./graph.ts";

/** Interface for rewrite rules: access to the graph built so far, and functions that add to it. */
export interface RewriteContext {
  /** Node that computes a value. */
  readonly producer: (ref: ValueRef) => Node;
  readonly spec: (ref: ValueRef) => TensorSpec;
  /**
   * Add a node like `from` with other operands: the same operator and parameters, except for those in `changes`. The
   * rules are applied to the new node.
   */
  readonly derive: (from: Pick<Node, "op" | "params">, inputs: readonly ValueRef[], changes?: Params) => ValueRef;
  /**
   * Add a node with one output; the rules are applied to it. Must not be the operator that is being replaced: use
   * `derive` for that, so that no rule drops a parameter that it does not know.
   */
  readonly emit: (op: string, inputs: readonly ValueRef[], params?: Params) => ValueRef;
  /** A constant of the given spec. */
  readonly constant: (spec: TensorSpec, value: number) => ValueRef;
  /** Value of a constant, `undefined` for anything else. */
  readonly constantValue: (ref: ValueRef) => number | undefined;
}

/**
 * Replace a node with one output by an equal value of the same dtype and shape, or return `undefined` to leave it
 * unchanged.
 */
export type RewriteRule<P extends Params = Params> = (
  node: Node & { readonly params: P },
  context: RewriteContext,
) => ValueRef | undefined;

import type { TensorSpec } from "../shape.ts";
import type { Node, Params, ValueRef } from "./graph.ts";

/** Interface for rewrite rules: access to the new graph built so far, and functions that add nodes to this graph. */
export interface RewriteContext {
  /** Returns the node that computes a value. */
  readonly producer: (ref: ValueRef) => Node;
  readonly spec: (ref: ValueRef) => TensorSpec;
  /**
   * Adds a copy of node `from` with other operands, and with the parameters in `changes` replaced. The rewrite rules
   * are applied to the new node.
   */
  readonly derive: (from: Pick<Node, "op" | "params">, inputs: readonly ValueRef[], changes?: Params) => ValueRef;
  /**
   * Adds a node with one output. The rewrite rules are applied to the new node. `op` must not be the operator of the
   * replaced node: use `derive` for that operator, so that parameters unknown to the rule are kept.
   */
  readonly emit: (op: string, inputs: readonly ValueRef[], params?: Params) => ValueRef;
  /** Adds a constant with the given spec. */
  readonly constant: (spec: TensorSpec, value: number) => ValueRef;
  /** Returns the value of a constant; `undefined` if the referenced value is not a constant. */
  readonly constantValue: (ref: ValueRef) => number | undefined;
}

/**
 * Replaces a node with one output by an equal value of the same dtype and shape, or returns `undefined` to leave the
 * node unchanged.
 */
export type RewriteRule<P extends Params = Params> = (
  node: Node & { readonly params: P },
  context: RewriteContext,
) => ValueRef | undefined;

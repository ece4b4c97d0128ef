import type { Graph } from "../graph/graph.ts";
import type { TensorSpec } from "../shape.ts";
import type { TreeStructure } from "../tree.ts";

/** A value that is passed from one stage to the next. */
export interface CutValue {
  /** Name given by `tap`. */
  readonly name: string;
  readonly spec: TensorSpec;
  /** Whether a cotangent is sent back for the value, which requires a floating-point dtype. */
  readonly hasCotangent: boolean;
}

/**
 * Source of a forward value for the backward pass: an input or output of the forward pass, by index, or a value that
 * the forward pass returns only for the backward pass ("saved").
 */
export interface KeptValue {
  readonly from: "params" | "args" | "incoming" | "outgoing" | "saved";
  readonly index: number;
}

/**
 * One stage of a step: a graph of its forward pass and a graph of its backward pass. Both are plain data and may be run
 * anywhere, once per micro-batch. `stageForward` and `stageBackward` apply them.
 */
export interface Stage {
  /** Numbers of the parameter leaves of the stage, ascending. */
  readonly params: readonly number[];
  /** Numbers of the leaves of further arguments that the stage reads. */
  readonly args: readonly number[];
  /** Values from the previous stage; empty in the first stage. */
  readonly incoming: readonly CutValue[];
  /** Values for the next stage; the loss in the last stage. */
  readonly outgoing: readonly CutValue[];
  /** Numbers of the leaves of further results that the stage computes. */
  readonly aux: readonly number[];
  /** Inputs: params, args, incoming. Outputs: outgoing, aux, then values saved for the backward pass. */
  readonly forward: Graph;
  /**
   * Inputs: the kept values, then the cotangents of `outgoing`. Outputs: the cotangents of `incoming`, then the
   * gradients of `params`. Values without a cotangent are omitted.
   */
  readonly backward: Graph;
  readonly kept: readonly KeptValue[];
}

/** A parameter that several stages read: its gradient is the sum of the stages' gradients. */
export interface SharedParam {
  readonly leaf: number;
  /** Path in the tree of parameters. */
  readonly path: string;
  readonly stages: readonly number[];
}

/** A step cut into stages. */
export interface CutStep {
  readonly stages: readonly Stage[];
  readonly shared: readonly SharedParam[];
  readonly params: TreeStructure;
  readonly aux: TreeStructure;
}

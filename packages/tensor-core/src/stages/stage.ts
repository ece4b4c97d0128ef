import type { Graph } from "../graph/graph.ts";
import type { TensorSpec } from "../shape.ts";
import type { TreeStructure } from "../tree.ts";

/** A value that passes from one stage to the next. */
export interface CutValue {
  /** That it was tapped by. */
  readonly name: string;
  readonly spec: TensorSpec;
  /** Whether a cotangent comes back for it: it is of real numbers. */
  readonly hasCotangent: boolean;
}

/**
 * Where backward finds a value of forward: among what forward was given or gave, by position there, or among the values
 * that forward returns for backward alone.
 */
export interface KeptValue {
  readonly from: "params" | "args" | "incoming" | "outgoing" | "saved";
  readonly index: number;
}

/**
 * One stage of a step: a graph of its forward pass and one of its backward pass. Both are plain data and may be run
 * where and when one likes, as often as there are micro-batches. `stageForward` and `stageBackward` apply them.
 */
export interface Stage {
  /** Leaves of the parameters that it has, by their numbers, ascending. */
  readonly params: readonly number[];
  /** Leaves of the further arguments that it reads. */
  readonly args: readonly number[];
  /** From the stage before; empty in the first. */
  readonly incoming: readonly CutValue[];
  /** For the next stage; in the last one the loss. */
  readonly outgoing: readonly CutValue[];
  /** Leaves of the further results that it computes. */
  readonly aux: readonly number[];
  /** Inputs: params, args, incoming. Outputs: outgoing, aux, then what is saved for backward. */
  readonly forward: Graph;
  /**
   * Inputs: the kept values, then the cotangents of `outgoing`. Outputs: the cotangents of `incoming`, then the
   * gradients of `params`. Of values without cotangent none.
   */
  readonly backward: Graph;
  readonly kept: readonly KeptValue[];
}

/** A parameter that several stages read: its gradient is the sum of those that they give. */
export interface SharedParam {
  readonly leaf: number;
  /** Its place in the tree of parameters. */
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

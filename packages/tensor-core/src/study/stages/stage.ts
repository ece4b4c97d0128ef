import type { Graph } from "../../graph/graph.ts";
import type { TensorSpec } from "../../shape.ts";
import type { TreeStructure } from "../../tree.ts";

/** Value that a stage passes to the next stage. */
export interface CutValue {
  /** Name of the value, as passed to `tap`. */
  readonly name: string;
  readonly spec: TensorSpec;
  /** Whether the next stage sends back a cotangent of the value. Only floating-point values have cotangents. */
  readonly hasCotangent: boolean;
}

/**
 * Location of a forward value for the backward pass: an input or output of the forward pass, by index, or a value that
 * the forward graph returns only for the backward pass ("saved").
 */
export interface KeptValue {
  readonly from: "params" | "args" | "incoming" | "outgoing" | "saved";
  readonly index: number;
}

/**
 * One stage of a step: a graph of its forward pass and a graph of its backward pass. Both graphs are plain data and run
 * once per micro-batch. `stageForward` and `stageBackward` apply the graphs.
 */
export interface Stage {
  /** Indices of the parameter leaves that the stage reads, ascending. */
  readonly params: readonly number[];
  /** Indices of the leaves of further arguments that the stage reads. */
  readonly args: readonly number[];
  /** Values received from the previous stage; empty in the first stage. */
  readonly incoming: readonly CutValue[];
  /** Values passed to the next stage; in the last stage, the loss. */
  readonly outgoing: readonly CutValue[];
  /** Indices of the leaves of auxiliary results that the stage computes. */
  readonly aux: readonly number[];
  /**
   * Graph of the forward pass. Inputs: params, args, incoming. Outputs: outgoing, aux, then the values saved for the
   * backward pass.
   */
  readonly forward: Graph;
  /**
   * Graph of the backward pass. Inputs: the kept values, then the cotangents of `outgoing`. Outputs: the cotangents of
   * `incoming`, then the gradients of `params`. Cut values without `hasCotangent` are omitted.
   */
  readonly backward: Graph;
  readonly kept: readonly KeptValue[];
}

/** Parameter that several stages read. The parameter gradient is the sum over the stages that read the parameter. */
export interface SharedParam {
  readonly leaf: number;
  /** Path of the parameter in the tree of parameters. */
  readonly path: string;
  readonly stages: readonly number[];
}

/** Training step cut into stages. */
export interface CutStep {
  readonly stages: readonly Stage[];
  readonly shared: readonly SharedParam[];
  readonly params: TreeStructure;
  readonly aux: TreeStructure;
}

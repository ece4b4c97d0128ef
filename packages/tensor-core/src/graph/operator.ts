import type { CollectiveKind } from "../communicator.ts";
import { didYouMean } from "../did-you-mean.ts";
import { OperatorError } from "../errors.ts";
import type { TensorSpec } from "../shape.ts";
import type { DType } from "../dtype.ts";
import type { Params } from "./graph.ts";
import type { KernelNode } from "./kernel-node.ts";
import type { RewriteRule } from "./rewrite-rule.ts";
import type { Tensor } from "./tensor.ts";

/**
 * Cost of one node: floating-point operations, bytes read, bytes written. Plain data, which the cost model converts to
 * time.
 */
export interface Cost {
  readonly flops: number;
  readonly bytesRead: number;
  readonly bytesWritten: number;
}

/** A value of the reference interpreter: every dtype in f64. */
export interface ReferenceArray {
  readonly spec: TensorSpec;
  readonly data: Float64Array;
}

/** Arguments of an operator's gradient rule (vector-Jacobian product). */
export interface VjpContext<P extends Params> {
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly Tensor[];
  /** One per output; zeros for unused outputs. */
  readonly cotangents: readonly Tensor[];
  readonly params: P;
}

/**
 * Action of an executor for a node that has no kernel: pass an argument, return the rank's coordinate along a mesh
 * axis, start a collective, wait for a collective, or nothing for a barrier, which only prevents passes from merging
 * nodes.
 */
export type Role = "argument" | "position" | "start" | "done" | "barrier";

/** A reduction over the last dimensions that the kernel of its operand can compute. */
export interface Fold<P extends Params = Params> {
  /** Dtype of the operand. */
  readonly dtype: DType;
  /**
   * First dimension that is reduced, together with all later dimensions; `undefined` if other dimensions are reduced.
   */
  readonly from: (params: P, numDims: number) => number | undefined;
}

/** Properties of a ragged collective, which sends only some rows of a chunk. */
export interface RaggedFact {
  /** Kind of the request to the communicator. */
  readonly kind: CollectiveKind;
  /** Whether the operand has a chunk, and `rows` a count, per rank; otherwise a single chunk is sent to all ranks. */
  readonly chunkPerRank: boolean;
}

/** Kind of layer with parameters that a node implements; curvature statistics are collected by kind. */
export type LayerKind = "linear" | "convolution" | "embedding" | "norm";

/**
 * Interpretation of a node as a layer: indices of the operands that are its input, its weight, and its bias (if the
 * node itself adds the bias). The layer's result is output 0.
 */
export interface LayerReading {
  readonly kind: LayerKind;
  readonly input: number;
  readonly weight: number;
  readonly bias?: number;
}

/**
 * Properties of an operator that passes, memory plans and executors query; an absent property does not hold. Passes
 * never compare operator names.
 */
export interface OperatorFacts<P extends Params = Params> {
  readonly role?: Role;
  /** Whether operands can be swapped without changing a bit of the result. */
  readonly commutative?: boolean;
  /** Whether the node must run even if its results are unused, because another rank waits for it. */
  readonly hasEffect?: (params: P) => boolean;
  /**
   * Byte offset in operand i at which result i begins, if results are views of operands; `undefined` for a node that
   * computes or moves bytes.
   */
  readonly viewOffset?: (node: KernelNode<P>) => number | undefined;
  /**
   * Whether the result is the concatenation of its operands in memory, so that each operand may be computed in place.
   */
  readonly joinsOperands?: (node: KernelNode<P>) => boolean;
  /** Whether any kernel can write result `output` over operand `input`, if that operand is not needed otherwise. */
  readonly mayOverwrite?: (node: KernelNode<P>, input: number, output: number) => boolean;
  /**
   * Order in which a node that reads its operands one after the other finishes reading operand `input`: higher is
   * later.
   */
  readonly lastRead?: (params: P, input: number) => number;
  /** Whether the result has the same elements in the same order. */
  readonly keepsOrder?: boolean;
  /** Whether result i has the elements of operand i, possibly in another order, shape or dtype. */
  readonly rearranges?: boolean;
  /** Whether the operator adds its two operands. */
  readonly adds?: boolean;
  /**
   * Number of leading dimensions of operand 0 that are unchanged, for an operator that `rearranges` and does not keep
   * the order. Absent: none.
   */
  readonly leadingDimsKept?: (params: P) => number;
  /** Interpretations of the node as a layer with a weight: see `layersOf`. */
  readonly layer?: (node: KernelNode<P>) => readonly LayerReading[];
  /**
   * Whether the result repeats elements of the operand, so that a kernel may read the operand with stride 0 instead.
   */
  readonly stretches?: boolean;
  /**
   * Whether the result is a subset of the operand's elements, so that elementwise computations may be restricted to
   * that subset.
   */
  readonly selects?: boolean;
  /** Value of all elements of a constant; `-0`, `NaN` and infinities as strings. */
  readonly constantValue?: (params: P) => number | string;
  readonly fold?: Fold<P>;
  /**
   * Whether the parameters are a program, `FusedParams`, that replaces other nodes and keeps the specs of their
   * results; inferred shapes have adjacent dimensions merged.
   */
  readonly runsProgram?: boolean;
  /** Whether all ranks along the axis get the same result of the collective. */
  readonly isAlike?: boolean;
  /** Present for a collective whose second operand is the number of rows to send, known at run time. */
  readonly ragged?: RaggedFact;
  /** Formula text in printed programs. Default: the name with the operands in parentheses. */
  readonly formula?: (operands: readonly string[], params: P) => string;
  /** Rewrites to cheaper equal nodes, which `simplify` tries in order. */
  readonly rewrites?: readonly RewriteRule<P>[];
  /** Rewrites that are cheaper only if reductions are folds. */
  readonly foldRewrites?: readonly RewriteRule<P>[];
}

/**
 * Complete description of an operator. One file each, in `ops/`.
 *
 * - `infer`: shapes and dtypes of the outputs; throws `ShapeError` with both shapes and the rule.
 * - `vjp`: traced gradient rule; one entry per input, `undefined` if no gradient flows.
 * - `cost`: from shapes alone.
 * - `reference`: f64, slow and exact; returns the data of each output.
 */
export interface Operator<P extends Params = Params> extends OperatorFacts<P> {
  readonly name: string;
  readonly infer: (inputs: readonly TensorSpec[], params: P) => TensorSpec[];
  readonly vjp?: (context: VjpContext<P>) => (Tensor | undefined)[];
  readonly cost: (inputs: readonly TensorSpec[], outputs: readonly TensorSpec[], params: P) => Cost;
  readonly reference: (inputs: readonly ReferenceArray[], params: P, outputs: readonly TensorSpec[]) => Float64Array[];
  /** Scalar function of an elementwise operator. Present: the node may be fused. */
  readonly scalar?: (values: readonly number[], params: P, dtype: TensorSpec["dtype"]) => number;
  /**
   * Indices of the operands of a multiply-add operator that may be f16 or bf16, all of the same dtype, with sums in
   * f32.
   */
  readonly halfOperands?: readonly number[];
  /** Whether, with 16-bit operands, the parameter `resultDtype` selects the dtype of the result. */
  readonly choosesResult?: boolean;
  /** Whether no gradient flows through the operator. */
  readonly stopsGradient?: boolean;
  /** Composition from other operators, for backends without a kernel; users' operators only. */
  readonly composition?: (inputs: readonly Tensor[], params: P) => readonly Tensor[];
  /** Whether the reference interpreter runs the composition because no `reference` was given; users' operators only. */
  readonly referenceIsComposition?: boolean;
  /**
   * Reference of a collective operator: from the inputs of all ranks of the axis to the outputs of all ranks. Replaces
   * `reference`.
   */
  readonly collective?: (
    ranks: readonly (readonly ReferenceArray[])[],
    params: P,
    outputs: readonly TensorSpec[],
  ) => Float64Array[][];
}

/** Operators by name. */
export type OperatorTable = { readonly [name: string]: Operator };

/**
 * Whether the name is that of a user's operator. Users' names are `owner/name`, built-in names have no slash, so that
 * later versions of Skein cannot collide with users' names.
 */
export const isUserOperator = (name: string): boolean => name.includes("/");

/** Error for an undefined operator, with the cure. */
export const unknownOperator = (op: string, known: readonly string[]): OperatorError => {
  const meant = didYouMean(op, known);
  const cure = isUserOperator(op)
    ? "call the function that defineOperator returned, or restore the operators of a saved or posted graph by withOperators(graph, [...])"
    : "no built-in operator has this name, and users' operators are named owner/name";
  return new OperatorError(
    op,
    `this operator is not defined${meant === undefined ? "" : `; did you mean "${meant}"?`}; ${cure}`,
  );
};

/**
 * Add a user's operator to the definitions of a graph. Throws OperatorError if the name already has another definition.
 */
export const addDefinition = (definitions: Map<string, Operator>, operator: Operator): void => {
  const known = definitions.get(operator.name);
  if (known !== undefined && known !== operator)
    throw new OperatorError(
      operator.name,
      "one graph contains two different definitions of this name; define the operator once, outside of traced functions, or rename one of the two",
    );
  definitions.set(operator.name, operator);
};

/**
 * Type helper for the operator files of this package: typed parameters inside, the uniform type outside. Users call
 * `defineOperator` of `define-operator.ts`.
 */
export const defineOperator = <P extends Params>(operator: Operator<P>): Operator => operator as unknown as Operator;

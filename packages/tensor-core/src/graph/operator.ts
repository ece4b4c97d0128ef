import type { CollectiveKind } from "../communicator.ts";
import { didYouMean } from "../did-you-mean.ts";
import { OperatorError } from "../errors.ts";
import type { TensorSpec } from "../shape.ts";
import type { DType } from "../dtype.ts";
import type { Params } from "./graph.ts";
import type { KernelNode } from "./kernel-node.ts";
import type { RewriteRule } from "./rewrite-rule.ts";
import type { Tensor } from "./tensor.ts";

/** Cost of one node: floating-point operations, bytes read, bytes written. The cost model converts a cost to time. */
export interface Cost {
  readonly flops: number;
  readonly bytesRead: number;
  readonly bytesWritten: number;
}

/** Value in the reference interpreter: elements as f64, for any dtype. */
export interface ReferenceArray {
  readonly spec: TensorSpec;
  readonly data: Float64Array;
}

/** Arguments of an operator's gradient rule (vector-Jacobian product). */
export interface VjpContext<P extends Params> {
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly Tensor[];
  /** Cotangent of each output; zeros for unused outputs. */
  readonly cotangents: readonly Tensor[];
  readonly params: P;
}

/**
 * Executor action for a node without a kernel. "argument": pass an argument; "position": return the rank's coordinate
 * along a mesh axis; "start": start a collective; "done": wait for a collective; "barrier": no action, the node only
 * prevents passes from merging nodes.
 */
export type Role = "argument" | "position" | "start" | "done" | "barrier";

/** Reduction over trailing dimensions. The reduction can be fused into the kernel that computes its operand. */
export interface Fold<P extends Params = Params> {
  /** Dtype that the operand of the reduction must have. */
  readonly dtype: DType;
  /** Returns d if dimensions d and later are reduced; `undefined` if other dimensions are reduced. */
  readonly from: (params: P, numDims: number) => number | undefined;
}

/** Properties of a ragged collective, a collective that sends only the first rows of each chunk. */
export interface RaggedFact {
  /** Kind of the corresponding communicator request. */
  readonly kind: CollectiveKind;
  /**
   * Whether the operand has one chunk per rank, and `rows` has one count per rank. If false, a single chunk is sent to
   * all ranks.
   */
  readonly chunkPerRank: boolean;
}

/** Kind of parameterized layer that a node implements. Determines which curvature statistics are collected. */
export type LayerKind = "linear" | "convolution" | "embedding" | "norm";

/**
 * Interpretation of a node as a layer: operand indices of the layer's input, weight and bias. The bias is absent if the
 * node adds no bias. The layer's result is output 0.
 */
export interface LayerReading {
  readonly kind: LayerKind;
  readonly input: number;
  readonly weight: number;
  readonly bias?: number;
}

/**
 * Properties of an operator for passes, memory plans and executors, which never compare operator names. An absent
 * property means that the operator does not have the property.
 */
export interface OperatorFacts<P extends Params = Params> {
  readonly role?: Role;
  /** Whether swapping the operands gives a bitwise identical result. */
  readonly commutative?: boolean;
  /** Whether the node must run even if its results are unused, because another rank waits for it. */
  readonly hasEffect?: (params: P) => boolean;
  /**
   * Returns the byte offset in operand i at which result i begins, if results are views of operands; `undefined` if the
   * node computes or copies bytes.
   */
  readonly viewOffset?: (node: KernelNode<P>) => number | undefined;
  /**
   * Whether the result in memory is the concatenation of the operands. Producers may then write the operands directly
   * into the memory of the result.
   */
  readonly joinsOperands?: (node: KernelNode<P>) => boolean;
  /**
   * Whether any kernel of the operator can write result `output` over operand `input`, provided that no other node
   * needs the operand.
   */
  readonly mayOverwrite?: (node: KernelNode<P>, input: number, output: number) => boolean;
  /**
   * Returns the position of operand `input` in the order in which the node finishes reading its operands: an operand
   * with a higher number is last read after all operands with lower numbers. Only for nodes that read their operands
   * one after the other.
   */
  readonly lastRead?: (params: P, input: number) => number;
  /** Whether the result has the same elements as the operand, in the same row-major order. */
  readonly keepsOrder?: boolean;
  /** Whether result i has the elements of operand i, possibly in another order, shape or dtype. */
  readonly rearranges?: boolean;
  /** Whether the operator adds its two operands. */
  readonly adds?: boolean;
  /**
   * Number of leading dimensions of operand 0 that the operator does not rearrange. Only for operators with
   * `rearranges` and without `keepsOrder`. Absent: 0.
   */
  readonly leadingDimsKept?: (params: P) => number;
  /** Interpretations of the node as a layer with a weight: see `layersOf`. */
  readonly layer?: (node: KernelNode<P>) => readonly LayerReading[];
  /**
   * Whether the result repeats elements of the operand. A consumer kernel may then read the operand with stride 0
   * instead of the result.
   */
  readonly stretches?: boolean;
  /**
   * Whether the result is a subset of the operand's elements. Elementwise computations may then be restricted to the
   * subset.
   */
  readonly selects?: boolean;
  /** Returns the value that all elements of a constant have; `-0`, `NaN` and infinities are strings. */
  readonly constantValue?: (params: P) => number | string;
  readonly fold?: Fold<P>;
  /**
   * Whether the parameters are a fused program (`FusedParams`). The node has the result specs of the fused nodes,
   * whereas `infer` returns shapes with adjacent dimensions merged.
   */
  readonly runsProgram?: boolean;
  /** Whether the result of the collective is equal on all ranks along the axis. */
  readonly isReplicated?: boolean;
  /**
   * Properties of a ragged collective, whose second operand is the number of rows to send. Absent: not a ragged
   * collective.
   */
  readonly ragged?: RaggedFact;
  /** Returns the formula in printed programs. Default: the operator name with the operands in parentheses. */
  readonly formula?: (operands: readonly string[], params: P) => string;
  /**
   * Rewrite rules that replace the node by a cheaper computation of the same values. `simplify` tries the rules in
   * order.
   */
  readonly rewrites?: readonly RewriteRule<P>[];
  /** Rewrite rules whose result is cheaper only if reductions are fused into the kernels of their operands (`Fold`). */
  readonly foldRewrites?: readonly RewriteRule<P>[];
}

/**
 * Complete description of an operator. Each operator has its own file in `ops/`.
 *
 * - `infer`: shapes and dtypes of the outputs; throws `ShapeError` with both shapes and the rule.
 * - `vjp`: traced gradient rule; one entry per input, `undefined` if no gradient flows.
 * - `cost`: computed from shapes alone.
 * - `reference`: f64, slow and exact; returns the data of each output.
 */
export interface Operator<P extends Params = Params> extends OperatorFacts<P> {
  readonly name: string;
  readonly infer: (inputs: readonly TensorSpec[], params: P) => TensorSpec[];
  readonly vjp?: (context: VjpContext<P>) => (Tensor | undefined)[];
  readonly cost: (inputs: readonly TensorSpec[], outputs: readonly TensorSpec[], params: P) => Cost;
  readonly reference: (inputs: readonly ReferenceArray[], params: P, outputs: readonly TensorSpec[]) => Float64Array[];
  /**
   * Scalar function of an elementwise operator. Elementwise operators may be fused. Absent: the operator is not
   * elementwise.
   */
  readonly scalar?: (values: readonly number[], params: P, dtype: TensorSpec["dtype"]) => number;
  /**
   * For a multiply-add operator: indices of the operands that may be f16 or bf16. All of these operands must have the
   * same dtype; sums are in f32.
   */
  readonly halfOperands?: readonly number[];
  /** Whether the parameter `resultDtype` selects the dtype of the result if operands are 16-bit floats. */
  readonly choosesResult?: boolean;
  /** Whether no gradient flows through the operator. */
  readonly stopsGradient?: boolean;
  /**
   * Composition of other operators that computes this operator, for backends and exporters that do not have the
   * operator itself. Compositions of built-in operators contain only elementwise operators, see `composedElementwise`.
   */
  readonly composition?: (inputs: readonly Tensor[], params: P) => readonly Tensor[];
  /** Whether the reference interpreter runs the composition because no `reference` was given; users' operators only. */
  readonly referenceIsComposition?: boolean;
  /**
   * Reference implementation of a collective operator, which replaces `reference`: maps the inputs of all ranks along
   * the axis to the outputs of all ranks.
   */
  readonly collective?: (
    ranks: readonly (readonly ReferenceArray[])[],
    params: P,
    outputs: readonly TensorSpec[],
  ) => Float64Array[][];
}

/** Operator that has a composition. */
export type ComposedOperator = Operator & Required<Pick<Operator, "composition">>;

/** Operators by name. */
export type OperatorTable = { readonly [name: string]: Operator };

/**
 * Whether a name belongs to a user's operator. Users' names have the form `owner/name`. Built-in names have no slash,
 * so that names added in later versions of Skein cannot collide.
 */
export const isUserOperator = (name: string): boolean => name.includes("/");

/** Creates the error for an undefined operator, with a suggested fix. */
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
 * Adds a user's operator to the definitions of a graph. Throws OperatorError if the name already has another
 * definition.
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
 * Type helper for the operator files of this package: converts an operator with typed parameters to the type
 * `Operator`. Users call `defineOperator` of `define-operator.ts`.
 */
export const defineOperator = <P extends Params>(operator: Operator<P>): Operator => operator as unknown as Operator;

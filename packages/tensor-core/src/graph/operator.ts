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
 * Work of one node: floating-point operations, bytes read, bytes written. Data, so that the cost model can price it.
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

/** What an operator's vector-Jacobian product is made of. */
export interface VjpContext<P extends Params> {
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly Tensor[];
  /** One per output; zeros where an output was not used. */
  readonly cotangents: readonly Tensor[];
  readonly params: P;
}

/**
 * What an executor does itself with a node, for which no kernel runs: take an argument, tell the rank's position along
 * a mesh axis, begin a collective, wait for one, or nothing, where a node is there to keep passes from merging others.
 */
export type Role = "argument" | "position" | "start" | "done" | "barrier";

/** A reduction over the last dimensions that a kernel can do where it computes the operand. */
export interface Fold<P extends Params = Params> {
  /** Of the operand. */
  readonly dtype: DType;
  /** The first dimension that is reduced, with all behind it; `undefined` where others are. */
  readonly from: (params: P, numDims: number) => number | undefined;
}

/** What moves some rows of a chunk only, as a collective that moves all of them. */
export interface RaggedFact {
  /** What is asked of the communicator. */
  readonly kind: CollectiveKind;
  /** Whether the operand has a chunk, and `rows` a count, for each rank, or one chunk that goes to all of them. */
  readonly chunkPerRank: boolean;
}

/** What a node does as a layer with parameters; curvature is gathered by it. */
export type LayerKind = "linear" | "convolution" | "embedding" | "norm";

/**
 * A way to read a node as a layer: which operand is its input, which its weight, and, where the node itself adds it,
 * its bias. Its result is output 0.
 */
export interface LayerReading {
  readonly kind: LayerKind;
  readonly input: number;
  readonly weight: number;
  readonly bias?: number;
}

/**
 * What passes, memory plans and executors ask of an operator; what is left out does not hold. They never ask for its
 * name.
 */
export interface OperatorFacts<P extends Params = Params> {
  readonly role?: Role;
  /** Operands may be exchanged without changing a bit of the result. */
  readonly commutative?: boolean;
  /** Must happen even where nobody reads a result: another rank waits for it. */
  readonly hasEffect?: (params: P) => boolean;
  /** Result i may be the bytes of operand i from this offset on; `undefined` for a node that computes or moves them. */
  readonly viewOffset?: (node: KernelNode<P>) => number | undefined;
  /** Whether the result is its operands one after the other in memory, so that each may be computed in its place. */
  readonly joinsOperands?: (node: KernelNode<P>) => boolean;
  /** Whether any kernel can write result `output` over operand `input`, when nobody else needs that. */
  readonly mayOverwrite?: (node: KernelNode<P>, input: number, output: number) => boolean;
  /** When a node that reads its operands one after the other is done with operand `input`: the later, the more. */
  readonly lastRead?: (params: P, input: number) => number;
  /** The same elements in the same order. */
  readonly keepsOrder?: boolean;
  /** Result i has the elements of operand i, maybe in another order, shape or dtype. */
  readonly rearranges?: boolean;
  /** Its two operands are added. */
  readonly adds?: boolean;
  /**
   * Number of leading dimensions of operand 0 that stay as they are, of an operator that `rearranges` and does not
   * keep the order. Absent: none.
   */
  readonly leadingDimsKept?: (params: P) => number;
  /** How it may be a layer with a weight: see `layersOf`. */
  readonly layer?: (node: KernelNode<P>) => readonly LayerReading[];
  /** The operand's elements, each several times: a kernel may read them with stride 0 instead. */
  readonly stretches?: boolean;
  /**
   * Some of the operand's elements, whatever they are: what is computed element by element may be computed of these
   * alone.
   */
  readonly selects?: boolean;
  /** The one value of all elements, `-0`, `NaN` and infinities by their names. */
  readonly constantValue?: (params: P) => number | string;
  readonly fold?: Fold<P>;
  /**
   * Its parameters are a program, `FusedParams`, in place of other nodes, whose specs its results keep; what is
   * inferred has neighbouring dimensions merged.
   */
  readonly runsProgram?: boolean;
  /** A collective of which all ranks along its axis get the same result. */
  readonly isAlike?: boolean;
  /** A collective whose second operand says at run time how much of the first one travels. */
  readonly ragged?: RaggedFact;
  /** How it is written in the formulas of a program. Default: its name with the operands in parentheses. */
  readonly formula?: (operands: readonly string[], params: P) => string;
  /** Cheaper equals: `simplify` tries them in order. */
  readonly rewrites?: readonly RewriteRule<P>[];
  /** Those that are cheaper only where reductions are folds. */
  readonly foldRewrites?: readonly RewriteRule<P>[];
}

/**
 * What the whole system knows of an operator. One file each, in `ops/`.
 *
 * - `infer`: shapes and dtypes of the outputs; throws `ShapeError` naming both shapes and the rule.
 * - `vjp`: traced gradient rule; one entry per input, `undefined` where nothing flows.
 * - `cost`: from shapes alone.
 * - `reference`: f64, slow and right; returns the data of each output.
 */
export interface Operator<P extends Params = Params> extends OperatorFacts<P> {
  readonly name: string;
  readonly infer: (inputs: readonly TensorSpec[], params: P) => TensorSpec[];
  readonly vjp?: (context: VjpContext<P>) => (Tensor | undefined)[];
  readonly cost: (inputs: readonly TensorSpec[], outputs: readonly TensorSpec[], params: P) => Cost;
  readonly reference: (inputs: readonly ReferenceArray[], params: P, outputs: readonly TensorSpec[]) => Float64Array[];
  /** Elementwise operators only: the scalar function. Such a node may be fused. */
  readonly scalar?: (values: readonly number[], params: P, dtype: TensorSpec["dtype"]) => number;
  /** Operators that multiply and add: the operands that may be f16 or bf16, all of them together, with sums in f32. */
  readonly halfOperands?: readonly number[];
  /** With operands of 16 bits: the parameter `resultDtype` says what the result is stored as. */
  readonly choosesResult?: boolean;
  /** No gradient flows through it, whatever it is made of. */
  readonly stopsGradient?: boolean;
  /** Users' operators only: the same from other operators, for backends that have no kernel. */
  readonly composition?: (inputs: readonly Tensor[], params: P) => readonly Tensor[];
  /** Users' operators only: `reference` was not given, so the reference interpreter runs the composition too. */
  readonly referenceIsComposition?: boolean;
  /** Collective operators only: inputs of all ranks of the axis in, outputs of all ranks out. Replaces `reference`. */
  readonly collective?: (
    ranks: readonly (readonly ReferenceArray[])[],
    params: P,
    outputs: readonly TensorSpec[],
  ) => Float64Array[][];
}

/** Operators by name. */
export type OperatorTable = { readonly [name: string]: Operator };

/**
 * Whether an operator of this name is a user's: these are `owner/name`, ours have no slash, so that a later Skein
 * cannot take a name that a user has.
 */
export const isUsersOperator = (name: string): boolean => name.includes("/");

/** That nobody has defined an operator, as an error with the cure. */
export const unknownOperator = (op: string, known: readonly string[]): OperatorError => {
  const meant = didYouMean(op, known);
  const cure = isUsersOperator(op)
    ? "call what defineOperator returned, or give a graph that was saved or posted its operators back by withOperators(graph, [...])"
    : "no operator of Skein has this name, and those of users are named owner/name";
  return new OperatorError(
    op,
    `this operator is not defined${meant === undefined ? "" : `; did you mean "${meant}"?`}; ${cure}`,
  );
};

/** Add a user's operator to those of a graph. Throws OperatorError where the name has another meaning there. */
export const addDefinition = (definitions: Map<string, Operator>, operator: Operator): void => {
  const known = definitions.get(operator.name);
  if (known !== undefined && known !== operator)
    throw new OperatorError(
      operator.name,
      "two different definitions of this name meet in one graph; define it once, outside of the functions that are traced, or give one of them another name",
    );
  definitions.set(operator.name, operator);
};

/**
 * Give an operator file of this package its typed parameters, and the table its uniform type. Users have
 * `defineOperator` of `define-operator.ts`.
 */
export const defineOperator = <P extends Params>(operator: Operator<P>): Operator => operator as unknown as Operator;

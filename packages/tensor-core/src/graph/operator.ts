import { didYouMean } from "../did-you-mean.ts";
import { OperatorError } from "../errors.ts";
import type { TensorSpec } from "../shape.ts";
import type { Params } from "./graph.ts";
import type { Tensor } from "./tensor.ts";

/** Work of one node: floating-point operations, bytes read, bytes written. Data, so that the cost model can price it. */
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

export interface VjpContext<P extends Params> {
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly Tensor[];
  /** One per output; zeros where an output was not used. */
  readonly cotangents: readonly Tensor[];
  readonly params: P;
}

/**
 * What the whole system knows of an operator. One file each, in `ops/`.
 *
 * - `infer`: shapes and dtypes of the outputs; throws `ShapeError` naming both shapes and the rule.
 * - `vjp`: traced gradient rule; one entry per input, `undefined` where nothing flows.
 * - `cost`: from shapes alone.
 * - `reference`: f64, slow and right; returns the data of each output.
 */
export interface Operator<P extends Params = Params> {
  readonly name: string;
  readonly infer: (inputs: readonly TensorSpec[], params: P) => TensorSpec[];
  readonly vjp?: (context: VjpContext<P>) => (Tensor | undefined)[];
  readonly cost: (inputs: readonly TensorSpec[], outputs: readonly TensorSpec[], params: P) => Cost;
  readonly reference: (inputs: readonly ReferenceArray[], params: P, outputs: readonly TensorSpec[]) => Float64Array[];
  /** Elementwise operators only: the scalar function. Such a node may be fused. */
  readonly scalar?: (values: readonly number[], params: P, dtype: TensorSpec["dtype"]) => number;
  /** Operators that multiply and add: the operands that may be f16, all of them together, with sums in f32. */
  readonly halfOperands?: readonly number[];
  /** With f16 operands: the parameter `resultDtype` says what the result is stored as. */
  readonly choosesResult?: boolean;
  /** No gradient flows through it, whatever it is made of. */
  readonly stopsGradient?: boolean;
  /** Users' operators only: the same from other operators, for backends that have no kernel. */
  readonly composition?: (inputs: readonly Tensor[], params: P) => readonly Tensor[];
  /** Users' operators only: `reference` was not given, so the reference interpreter runs the composition too. */
  readonly referenceIsComposition?: boolean;
  /** Collective operators only: inputs of all ranks of the axis in, outputs of all ranks out. Replaces `reference`. */
  readonly collective?: (ranks: readonly (readonly ReferenceArray[])[], params: P, outputs: readonly TensorSpec[]) => Float64Array[][];
}

export type OperatorTable = { readonly [name: string]: Operator };

/** Whether an operator of this name is a user's: these are `owner/name`, ours have no slash, so that a later Skein cannot take a name that a user has. */
export const isUsersOperator = (name: string): boolean => name.includes("/");

/** That nobody has defined an operator, as an error with the cure. */
export const unknownOperator = (op: string, known: readonly string[]): OperatorError => {
  const meant = didYouMean(op, known);
  const cure = isUsersOperator(op)
    ? "call what defineOperator returned, or give a graph that was saved or posted its operators back by withOperators(graph, [...])"
    : "no operator of Skein has this name, and those of users are named owner/name";
  return new OperatorError(op, `this operator is not defined${meant === undefined ? "" : `; did you mean "${meant}"?`}; ${cure}`);
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

/** Give an operator file of this package its typed parameters, and the table its uniform type. Users have `defineOperator` of `define-operator.ts`. */
export const defineOperator = <P extends Params>(operator: Operator<P>): Operator => operator as unknown as Operator;

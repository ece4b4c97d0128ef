import { InvariantError, ShapeError } from "../../errors.ts";
import type { Params } from "../../graph/graph.ts";
import {
  type ComposedOperator,
  defineOperator,
  type Operator,
  type OperatorFacts,
  type VjpContext,
} from "../../graph/operator.ts";
import type { Tensor } from "../../graph/tensor.ts";
import type { DType } from "../../dtype.ts";
import { byteLength, elementCount, formatSpec, sameShape, type TensorSpec } from "../../shape.ts";

/** Definition of an elementwise operator, from which `elementwise` creates an `Operator`. */
export interface ElementwiseRule<P extends Params> extends OperatorFacts<P> {
  readonly name: string;
  readonly arity: number;
  /** Dtypes that the operator accepts. */
  readonly dtypes: readonly DType[];
  /** Returns the dtype of the result. Default: the dtype of the operands. */
  readonly result?: (inputs: readonly TensorSpec[], params: P) => DType;
  /** Number of flops per element, for the cost model. Default: 1. */
  readonly flops?: number;
  /** Computes one element of the result in f64. Also the reference implementation of the operator. */
  readonly scalar: (values: readonly number[], params: P, dtype: DType) => number;
  readonly vjp?: (context: VjpContext<P>) => (Tensor | undefined)[];
}

/**
 * Creates an operator that computes each element of its result from the corresponding elements of its operands. All
 * operands must have equal shape and dtype (the functions in `functions/` insert `broadcast-to` nodes), so fusion needs
 * no index rules.
 */
export const elementwise = <P extends Params = Params>({
  arity,
  dtypes,
  result: resultType,
  flops = 1,
  ...rule
}: ElementwiseRule<P>): Operator =>
  defineOperator<P>({
    ...rule,
    infer: (inputs, params) => {
      if (inputs.length !== arity)
        throw new InvariantError(`${rule.name} takes ${arity} operands, got ${inputs.length}`);
      const first = inputs[0]!;
      for (const input of inputs) {
        if (!dtypes.includes(input.dtype)) {
          throw new ShapeError(
            rule.name,
            `dtype ${input.dtype} is not supported, expected ${dtypes.join(", ")}; cast the operand first`,
          );
        }
        if (input.dtype !== first.dtype || !sameShape(input.shape, first.shape)) {
          throw new ShapeError(
            rule.name,
            `operands ${formatSpec(first)} and ${formatSpec(input)} differ; cast one of them so that the dtypes agree`,
          );
        }
      }
      return [{ dtype: resultType?.(inputs, params) ?? first.dtype, shape: first.shape }];
    },
    cost: (inputs, outputs) => ({
      flops: flops * elementCount(outputs[0]!.shape),
      bytesRead: inputs.reduce((sum, input) => sum + byteLength(input), 0),
      bytesWritten: byteLength(outputs[0]!),
    }),
    reference: (inputs, params, outputs) => {
      const result = new Float64Array(elementCount(outputs[0]!.shape));
      const values = new Array<number>(inputs.length);
      for (let i = 0; i < result.length; i++) {
        for (let operand = 0; operand < inputs.length; operand++) values[operand] = inputs[operand]!.data[i]!;
        result[i] = rule.scalar(values, params, inputs[0]!.spec.dtype);
      }
      return [result];
    },
  });

/** Definition of an elementwise operator that is also a composition of other elementwise operators. */
export interface ComposedRule<P extends Params> extends ElementwiseRule<P> {
  /**
   * Traced function that computes the operator from other elementwise operators. Must be as accurate as `scalar` for
   * all operands, so intermediate values must not cancel or overflow. The operator's conformance tests compare the
   * composition with `scalar` on each backend that runs the composition.
   */
  readonly composition: (inputs: readonly Tensor[], params: P) => Tensor;
}

/**
 * Creates an elementwise operator with a composition. Backends that have no instruction for the operator, and exporters
 * that have no equivalent, use the composition, so a new operator works immediately on all backends. `scalar` remains
 * the f64 reference, and `vjp` the derivative.
 */
export const composedElementwise = <P extends Params = Params>({
  composition,
  ...rule
}: ComposedRule<P>): ComposedOperator => ({
  ...elementwise<P>(rule),
  composition: (inputs, params) => [composition(inputs, params as P)],
});

/** Returns a function that formats a binary operator in infix notation, for printed programs. */
export const infix =
  (sign: string) =>
  ([a, b]: readonly string[]): string =>
    `(${a} ${sign} ${b})`;

import { OperatorError } from "../errors.ts";
import { formatSpec, sameSpec, type TensorSpec } from "../shape.ts";
import { runningTrace } from "../graph/emit.ts";
import { type Graph, type Params, specOf } from "../graph/graph.ts";
import type { Operator } from "../graph/operator.ts";
import { Tensor } from "../graph/tensor.ts";
import { trace } from "./trace.ts";

/** Runs the composition of a user's operator on tensors, and checks that the composition returns a list of tensors. */
export const compose = (
  { name, composition }: Operator,
  inputs: readonly Tensor[],
  params: Params,
): readonly Tensor[] => {
  const results: unknown = composition!(inputs, params);
  if (Array.isArray(results) && results.every((result) => result instanceof Tensor))
    return results as readonly Tensor[];
  const actual =
    results instanceof Tensor
      ? "a tensor"
      : Array.isArray(results)
        ? "a list that does not contain only tensors"
        : String(results);
  throw new OperatorError(name, `its composition returned ${actual}; return the list of its results, such as [y]`);
};

/**
 * Traces the composition of a user's operator to a graph. Mesh, coordinates and the stack of operators being composed
 * are taken from the running trace.
 *
 * @throws OperatorError if the composition uses the operator that it defines.
 */
export const traceComposition = (operator: Operator, inputs: readonly TensorSpec[], params: Params): Graph => {
  const outer = runningTrace();
  return trace((...args: Tensor[]) => compose(operator, args, params), inputs as readonly Tensor[], {
    mesh: outer?.mesh ?? {},
    place: outer?.place,
    composing: [...(outer?.composing ?? []), operator.name],
  }).graph;
};

/**
 * Checks that the results of a composition have the dtypes and shapes of the node's results. Throws OperatorError if a
 * dtype or shape differs.
 */
export const checkComposition = (op: string, composed: Graph, stated: readonly TensorSpec[]): void => {
  const results = composed.outputs.map((ref) => specOf(composed, ref));
  if (results.length !== stated.length || !results.every((spec, output) => sameSpec(spec, stated[output]!)))
    throw new OperatorError(
      op,
      `its composition returns ${results.map(formatSpec).join(", ") || "nothing"}, but its shape rule says ${stated.map(formatSpec).join(", ") || "nothing"}; dtypes and shapes of both must be equal`,
    );
};

import {
  add,
  ArgumentError,
  cast,
  flattenTree,
  type Graph,
  isFloat,
  SkeinError,
  sum,
  type Tensor,
  trace,
  valueAndGrad,
} from "@skein/tensor-core";
import { type DeviceFacts, type ListedShader, shadersOf } from "skein-train/profiling";
import type { Call } from "./call.ts";

/** Computes the sum of all float results, and the gradients of the sum with respect to all float operands. */
const withGradients = ({ name, fn }: Call, tensors: readonly Tensor[]): unknown => {
  const differentiable = tensors.filter(({ dtype }) => isFloat(dtype));
  return valueAndGrad((primals: readonly Tensor[]) => {
    const remaining = [...primals];
    const operands = tensors.map((tensor) => (isFloat(tensor.dtype) ? remaining.shift()! : tensor));
    const results = flattenTree<Tensor>(fn(...operands) as Tensor).leaves.filter(({ dtype }) => isFloat(dtype));
    if (results.length === 0 || differentiable.length === 0)
      throw new ArgumentError(
        `${name} has no gradient for these operands: it needs at least one float operand and one float result`,
      );
    return results.map((result) => sum(cast(result, "f32"))).reduce((all, one) => add(all, one));
  })(differentiable);
};

/**
 * Returns the shaders of a call on a device.
 * @throws ArgumentError with the first line of the function's message if operands are invalid.
 */
export const shadersOfCall = (call: Call, facts: DeviceFacts): readonly ListedShader[] => {
  const run = (...tensors: Tensor[]): unknown => (call.gradient ? withGradients(call, tensors) : call.fn(...tensors));
  let graph: Graph;
  try {
    ({ graph } = trace(run as (...tensors: Tensor[]) => Tensor, call.specs as never));
  } catch (error) {
    if (error instanceof SkeinError && error.kind !== "user") throw error;
    // The remaining lines of the message locate the call in a user program, which does not exist for this command.
    const [reason] = (error instanceof Error ? error.message : String(error)).split("\n");
    throw new ArgumentError(reason!);
  }
  return shadersOf(graph, facts);
};

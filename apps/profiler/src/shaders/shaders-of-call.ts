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

/** The sum of all results, and its gradients by all operands of floats. */
const withGradients = ({ name, fn }: Call, tensors: readonly Tensor[]): unknown => {
  const moved = tensors.filter(({ dtype }) => isFloat(dtype));
  return valueAndGrad((primals: readonly Tensor[]) => {
    const left = [...primals];
    const operands = tensors.map((tensor) => (isFloat(tensor.dtype) ? left.shift()! : tensor));
    const results = flattenTree<Tensor>(fn(...operands) as Tensor).leaves.filter(({ dtype }) => isFloat(dtype));
    if (results.length === 0 || moved.length === 0)
      throw new ArgumentError(
        `${name} has no gradient for these operands: none of them, or of its results, is a float`,
      );
    return results.map((result) => sum(cast(result, "f32"))).reduce((all, one) => add(all, one));
  })(moved);
};

/** The shaders of a call on a device. @throws what the function says of its operands, in one line. */
export const shadersOfCall = (call: Call, facts: DeviceFacts): readonly ListedShader[] => {
  const run = (...tensors: Tensor[]): unknown => (call.gradient ? withGradients(call, tensors) : call.fn(...tensors));
  let graph: Graph;
  try {
    ({ graph } = trace(run as (...tensors: Tensor[]) => Tensor, call.specs as never));
  } catch (error) {
    if (error instanceof SkeinError && error.kind !== "user") throw error;
    // The lines below say where in a program the call stands, and there is none.
    const [reason] = (error instanceof Error ? error.message : String(error)).split("\n");
    throw new ArgumentError(reason!);
  }
  return shadersOf(graph, facts);
};

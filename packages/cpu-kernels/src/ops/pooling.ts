import { elementCount, type Shape } from "@skein/tensor-core";
import type { KernelNode, OperatorParams } from "@skein/tensor-core/backend";
import type { KernelCall } from "../kernel.ts";
import { partBegin, type Team } from "../team/team.ts";

/** Estimated nanoseconds per value of an image or a pooled image, in one thread. */
const valueNanoseconds = 0.2;

/**
 * Returns the sizes of a pooling operation, in the order in which the exports expect them. `x` is the image shape, `y`
 * the shape of the pooled image.
 */
export const poolingArguments = (x: Shape, y: Shape, params: OperatorParams["max-pool2d"]): number[] => {
  const [[top], [left]] = params.padding;
  return [...x, y[1]!, y[2]!, ...params.window, ...params.stride, top, left];
};

/**
 * Runs a pooling operation or its gradient. Threads share the images. The export expects the addresses of inputs and
 * outputs, then the sizes, starting with the batch.
 */
export const runPooling = (
  team: Team,
  name: string,
  node: KernelNode<OperatorParams["max-pool2d"]>,
  [batch = 0, ...sizes]: readonly number[],
): KernelCall => {
  const run = team.indexOf(name);
  const valueBytes = [...node.inputs, ...node.outputs].map(({ shape }) => 4 * elementCount(shape.slice(1)));
  const values = elementCount(node.inputs[0]!.shape) + elementCount(node.outputs[0]!.shape);
  const parts = team.partsOf(values * valueNanoseconds, batch);
  return (inputs, outputs) =>
    team.run(parts, (part, call) => {
      const first = partBegin(batch, part, parts);
      const addresses = [...inputs, ...outputs].map((address, i) => address + first * valueBytes[i]!);
      call(run, ...addresses, partBegin(batch, part + 1, parts) - first, ...sizes);
    });
};

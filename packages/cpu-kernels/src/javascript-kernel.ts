import { elementCount, type HostData, OperatorError, type TensorSpec } from "@skein/tensor-core";
import { hostArrayType, type KernelNode } from "@skein/tensor-core/backend";
import type { Kernel } from "./kernel.ts";

export interface JavaScriptKernelRule {
  /** Name of the operator, such as `mish.operator.name`. */
  readonly op: string;
  /**
   * Returns the reason why this node cannot run, as a sentence with a suggested fix, or undefined if the node can run.
   * If a node is refused, the operator's composition runs instead, if there is one.
   */
  readonly refuses?: (node: KernelNode) => string | undefined;
  /**
   * Computes every element of `outputs` from `inputs`. `inputs` must not be written. Elements are row-major. bool
   * elements are bytes 0 or 1; f16 and bf16 elements are bits in 16-bit words. The views are valid only during the
   * call. The return value is ignored.
   */
  readonly run: (inputs: readonly HostData[], outputs: readonly HostData[], node: KernelNode) => unknown;
}

/**
 * Creates a kernel from a JavaScript function over views of the backend's memory. Needs no build, but is slower than
 * WebAssembly.
 *
 * @throws OperatorError if the function is asynchronous: a graph's kernels run in sequence, and the memory changes
 * after the call.
 * @example
 * ```ts
 * const cube = defineOperator({
 *   name: "acme/cube",
 *   infer: ([x]) => [x!],
 *   reference: ([x]) => [x!.data.map((value) => value ** 3)],
 * });
 * const run = ([x]: readonly Float32Array[], [y]: readonly Float32Array[]) => x!.forEach((v, i) => (y![i] = v ** 3));
 * const kernel = javascriptKernel({ op: cube.operator.name, run: run as never });
 * console.log(kernel.op); // acme/cube
 * ```
 */
export const javascriptKernel = ({ op, refuses, run }: JavaScriptKernelRule): Kernel => ({
  op,
  ...(refuses !== undefined && { refuses }),
  bind: (node, _, memory) => {
    if (typeof run !== "function")
      throw new OperatorError(op, `run of its kernel is ${String(run)}, but must be a function of inputs and outputs`);
    const lengths = (specs: readonly TensorSpec[]) =>
      specs.map(({ dtype, shape }) => ({ View: hostArrayType[dtype], count: elementCount(shape) }));
    const [inputLayouts, outputLayouts] = [lengths(node.inputs), lengths(node.outputs)];
    // Created in each call, because the memory has a new buffer after growth.
    const viewsAt = (layouts: ReturnType<typeof lengths>, addresses: Int32Array): HostData[] =>
      layouts.map(({ View, count }, i) => new View(memory.buffer, addresses[i]! >>> 0, count));
    return (inputs, outputs) => {
      const returned = run(viewsAt(inputLayouts, inputs), viewsAt(outputLayouts, outputs), node);
      if (returned instanceof Promise) {
        returned.catch(() => undefined); // the rejection is reported below
        throw new OperatorError(
          op,
          "its kernel returned a promise; a kernel must write all its results before it returns",
        );
      }
    };
  },
});

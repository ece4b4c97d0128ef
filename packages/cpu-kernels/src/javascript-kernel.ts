import { elementCount, type HostData, OperatorError, type TensorSpec } from "@skein/tensor-core";
import { hostArrayType, type KernelNode } from "@skein/tensor-core/backend";
import type { Kernel } from "./kernel.ts";

export interface JavaScriptKernelRule {
  /** Name of the operator: `mish.operator.name`. */
  readonly op: string;
  /**
   * Why this node cannot run, as a sentence with the cure; absent when it can. An operator with a composition then runs
   * that.
   */
  readonly refuses?: (node: KernelNode) => string | undefined;
  /**
   * Compute every element of `outputs` from `inputs`, which are only to be read. Elements lie row by row; those of bool
   * are bytes 0 or 1, those of f16 and bf16 are bits in 16-bit words. The views end with the call. What it returns is
   * ignored.
   */
  readonly run: (inputs: readonly HostData[], outputs: readonly HostData[], node: KernelNode) => unknown;
}

/**
 * A kernel that is a plain JavaScript function over views of the backend's memory: nothing to build, and slower than
 * WebAssembly.
 *
 * @throws OperatorError where the function is asynchronous: a graph's kernels run one after the other, and later its
 * memory has other values.
 * @example
 * const kernel = javascriptKernel({
 *   op: mish.operator.name,
 *   run: ([x], [y]) => x.forEach((v, i) => { y[i] = v * Math.tanh(Math.log1p(Math.exp(v))); }),
 * });
 * const backend = await createCpuBackend({ kernels: [kernel] });
 */
export const javascriptKernel = ({ op, refuses, run }: JavaScriptKernelRule): Kernel => ({
  op,
  ...(refuses !== undefined && { refuses }),
  bind: (node, _, memory) => {
    if (typeof run !== "function")
      throw new OperatorError(op, `run of its kernel is ${String(run)}; it is a function of inputs and outputs`);
    const lengths = (specs: readonly TensorSpec[]) =>
      specs.map(({ dtype, shape }) => ({ View: hostArrayType[dtype], count: elementCount(shape) }));
    const [ofInputs, ofOutputs] = [lengths(node.inputs), lengths(node.outputs)];
    // Made anew in each call: the buffer of a memory that has grown is another one.
    const show = (shown: ReturnType<typeof lengths>, addresses: Int32Array): HostData[] =>
      shown.map(({ View, count }, i) => new View(memory.buffer, addresses[i]! >>> 0, count));
    return (inputs, outputs) => {
      const returned = run(show(ofInputs, inputs), show(ofOutputs, outputs), node);
      if (returned instanceof Promise) {
        returned.catch(() => undefined); // told below
        throw new OperatorError(
          op,
          "its kernel returned a promise; a kernel has written all of its results when it returns",
        );
      }
    };
  },
});

import { elementCount, type Shape, type TensorSpec } from "@skein/tensor-core";
import { operators, type Params, type KernelNode } from "@skein/tensor-core/backend";
import { firstDifference, type Tolerance } from "@skein/testing";
import type { Kernel } from "../src/kernel.ts";
import type { WasmExports } from "../src/wasm-exports.ts";
import { soloTeam, TeamFunctions } from "../src/team/team.ts";
import { compileWasm, detectBuild, instantiateWasm } from "../src/wasm-build.ts";

/** A kernel under test, with inputs and outputs that no other kernel uses. */
export interface BoundKernel {
  readonly call: () => void;
  readonly inputs: readonly Float32Array[];
  readonly outputs: readonly Float32Array[];
  /**
   * Checks the outputs of the last call.
   *
   * @throws Error unless the outputs are close to the f64 reference.
   */
  readonly check: (tolerance: Tolerance) => void;
}

/** WebAssembly instance of the fastest supported build, with its own memory and an allocator for this memory. */
export interface Bench {
  readonly wasm: WasmExports;
  /** Allocates `count` floats, fills them with small numbers, and returns their byte address. */
  readonly floats: (count: number) => number;
  readonly view: (address: number, count: number) => Float32Array;
  /** Releases all allocations. */
  readonly clear: () => void;
  /** Binds a kernel to new f32 inputs of the given shapes. */
  readonly bind: (kernel: Kernel, inputs: readonly Shape[], params: Params) => BoundKernel;
}

export const openBench = async (): Promise<Bench> => {
  const build = await detectBuild();
  const memory = new WebAssembly.Memory({ initial: 8192, maximum: 65536, shared: true });
  const wasm = instantiateWasm(await compileWasm(build), memory);
  const all = new Float32Array(memory.buffer);
  let next = 1024;
  const floats = (count: number): number => {
    const at = next;
    next += Math.ceil(count / 16) * 16 + 16;
    for (let i = at; i < at + count; i++) all[i] = ((i * 7919) % 201) / 100 - 1;
    return 4 * at;
  };
  const view = (address: number, count: number): Float32Array => all.subarray(address / 4, address / 4 + count);
  const bind = (kernel: Kernel, shapes: readonly Shape[], params: Params): BoundKernel => {
    const inputSpecs = shapes.map((shape): TensorSpec => ({ dtype: "f32", shape }));
    const operator = operators[kernel.op]!;
    const node: KernelNode = { op: kernel.op, inputs: inputSpecs, outputs: operator.infer(inputSpecs, params), params };
    const place = (specs: readonly TensorSpec[]): Int32Array =>
      Int32Array.from(specs, ({ shape }) => floats(elementCount(shape)));
    const [from, to] = [place(node.inputs), place(node.outputs)];
    const scratch = floats((kernel.scratchBytes?.(node, 1) ?? 0) / 4);
    const run = kernel.bind(node, wasm, memory, soloTeam(new TeamFunctions(wasm)));
    const views = (specs: readonly TensorSpec[], addresses: Int32Array): Float32Array[] =>
      specs.map(({ shape }, i) => view(addresses[i]!, elementCount(shape)));
    const [inputs, outputs] = [views(node.inputs, from), views(node.outputs, to)];
    const check = (tolerance: Tolerance): void => {
      const operands = inputs.map((data, i) => ({ spec: node.inputs[i]!, data: Float64Array.from(data) }));
      operator.reference(operands, params, node.outputs).forEach((expected, i) => {
        const difference = firstDifference(outputs[i]!, expected, tolerance);
        if (difference !== undefined) throw new Error(`${kernel.op}, output ${i}: ${difference}`);
      });
    };
    return { call: () => run(from, to, scratch, 0), inputs, outputs, check };
  };
  process.stdout.write(`build: ${build}, one thread\n`);
  return {
    wasm,
    floats,
    view,
    clear: () => {
      next = 1024;
    },
    bind,
  };
};

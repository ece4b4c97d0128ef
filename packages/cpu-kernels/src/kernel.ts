import type { KernelNode, OperatorName, OperatorParams, Params, WasmMemory } from "@skein/tensor-core/backend";
import type { Team } from "./team/team.ts";
import type { WasmExports } from "./wasm-exports.ts";

/**
 * Run the kernel once. Entries of `inputs` and `outputs` are byte addresses in the shared memory. They are aligned to
 * 16 bytes, or to the element if the planner placed a value inside a larger value. `scratch` is the address of the
 * requested scratch bytes, `constants` the address of the kernel's constants; both are aligned to 16 bytes.
 */
export type KernelCall = (inputs: Int32Array, outputs: Int32Array, scratch: number, constants: number) => void;

/**
 * Implementation of one operator in the shared memory. Built-in kernels have one file per operator in `ops/`, named
 * after the operator's file in tensor-core. User kernels are passed to `createCpuBackend`.
 */
export interface Kernel<P extends Params = Params> {
  readonly op: string;
  /** Reason why this node cannot run, as a sentence with the cure. Undefined if the node can run. */
  readonly refuses?: (node: KernelNode<P>) => string | undefined;
  /** Scratch memory of one call in bytes, for a team of `threads` threads. */
  readonly scratchBytes?: (node: KernelNode<P>, threads: number) => number;
  /**
   * Read-only data that the kernel needs in the shared memory. Written once per node at compile time, and kept as long
   * as the executable.
   */
  readonly constants?: (node: KernelNode<P>) => Uint8Array;
  /**
   * Choose the export and fix its sizes. Called once per node at compile time, and only if some output has elements.
   *
   * @param memory the memory of all addresses, shared by all ranks. A user's WebAssembly module imports this memory,
   * and must not place its own data in it.
   * @param team runs parts of the kernel in parallel.
   */
  readonly bind: (node: KernelNode<P>, wasm: WasmExports, memory: WasmMemory, team: Team) => KernelCall;
}

/** A kernel for a built-in operator, with typed parameters. */
export const kernelOf = <Op extends OperatorName>(kernel: Kernel<OperatorParams[Op]> & { readonly op: Op }): Kernel =>
  kernel as unknown as Kernel;

import type { KernelNode, OperatorName, OperatorParams, Params, WasmMemory } from "@skein/tensor-core/backend";
import type { Team } from "./team/team.ts";
import type { WasmExports } from "./wasm-exports.ts";

/**
 * Runs the kernel once. Entries of `inputs` and `outputs` are byte addresses in the shared memory. The addresses are
 * aligned to 16 bytes, or to the element if the planner placed a value inside a larger value. `scratch` is the address
 * of the requested scratch bytes, and `constants` is the address of the kernel's constants; both are aligned to 16
 * bytes.
 */
export type KernelCall = (inputs: Int32Array, outputs: Int32Array, scratch: number, constants: number) => void;

/**
 * Implementation of one operator in the shared memory. Built-in kernels have one file per operator in `ops/`, named
 * after the operator's file in tensor-core. User kernels are passed to `createCpuBackend`.
 */
export interface Kernel<P extends Params = Params> {
  readonly op: string;
  /**
   * Returns the reason why this node cannot run, as a sentence with a suggested fix, or undefined if the node can run.
   */
  readonly refuses?: (node: KernelNode<P>) => string | undefined;
  /** Returns the scratch memory of one call in bytes, for a team of `threads` threads. */
  readonly scratchBytes?: (node: KernelNode<P>, threads: number) => number;
  /**
   * Returns read-only data that the kernel needs in the shared memory. Written once per node at compile time, and kept
   * as long as the executable.
   */
  readonly constants?: (node: KernelNode<P>) => Uint8Array;
  /**
   * Chooses the WebAssembly export and fixes its sizes. Called once per node at compile time, and only if at least one
   * output has elements.
   *
   * @param memory Memory of all addresses, shared by all ranks. A user's WebAssembly module imports this memory, and
   * must not place its own data in it.
   * @param team Team of threads that share the work of the kernel.
   */
  readonly bind: (node: KernelNode<P>, wasm: WasmExports, memory: WasmMemory, team: Team) => KernelCall;
}

/** Declares a kernel of a built-in operator, with typed parameters. */
export const kernelOf = <Op extends OperatorName>(kernel: Kernel<OperatorParams[Op]> & { readonly op: Op }): Kernel =>
  kernel as unknown as Kernel;

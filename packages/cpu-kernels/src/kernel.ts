import type { KernelNode, OperatorName, OperatorParams, Params, WasmMemory } from "@skein/tensor-core/backend";
import type { Team } from "./team/team.ts";
import type { WasmExports } from "./wasm-exports.ts";

/**
 * Run the kernel once. Entries of `inputs` and `outputs` are byte addresses in the shared memory, aligned to 16 bytes
 * unless the planner placed a value inside a larger one (then to its element); `scratch` is the address of the bytes
 * asked for, `constants` that of the kernel's constants. Both are aligned to 16 bytes.
 */
export type KernelCall = (inputs: Int32Array, outputs: Int32Array, scratch: number, constants: number) => void;

/**
 * How one operator runs in the shared memory. Ours are one file per operator in `ops/`, named like the operator's file
 * in tensor-core. Those of users are given to `createCpuBackend`.
 */
export interface Kernel<P extends Params = Params> {
  readonly op: string;
  /** Why this node cannot run, as a sentence with the cure; absent when it can. */
  readonly refuses?: (node: KernelNode<P>) => string | undefined;
  /** Scratch memory of one call, bytes, where a team of so many threads runs it. */
  readonly scratchBytes?: (node: KernelNode<P>, threads: number) => number;
  /**
   * Read-only data that the kernel wants in the shared memory; written once per node at compile time, kept while the
   * executable lives.
   */
  readonly constants?: (node: KernelNode<P>) => Uint8Array;
  /**
   * Choose the export and fix its sizes; called once per node at compile time, and only when some output has elements.
   *
   * @param memory what addresses point into, shared by all ranks. A WebAssembly module of a user's imports it, and must
   * keep its own data out of it.
   * @param team runs parts of the kernel side by side.
   */
  readonly bind: (node: KernelNode<P>, wasm: WasmExports, memory: WasmMemory, team: Team) => KernelCall;
}

/** A kernel for an operator of ours: its nodes have the parameters of that. */
export const kernelOf = <Op extends OperatorName>(kernel: Kernel<OperatorParams[Op]> & { readonly op: Op }): Kernel =>
  kernel as unknown as Kernel;

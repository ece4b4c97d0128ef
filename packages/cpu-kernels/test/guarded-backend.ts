import {
  type Backend,
  byteLength,
  type DeviceArray,
  type Graph,
  elementCount,
  NdArray,
  type TensorSpec,
} from "@skein/tensor-core";
import {
  type CollectiveOrder,
  collectiveOrderOf,
  type Executable,
  formatSpec,
  hostArrayType,
  kernelNodeOf,
  roleOf,
  valueKey,
} from "@skein/tensor-core/backend";
import { prepareForCpu } from "../src/cpu-backend.ts";
import type { WasmExports } from "../src/wasm-exports.ts";
import { type KernelTable, kernels as ownKernels } from "../src/kernel-table.ts";
import { compileWasm, instantiateWasm, type WasmBuild } from "../src/wasm-build.ts";
import { createSharedMemory } from "../src/arena.ts";
import type { Blas } from "../src/blas.ts";
import { withBlas } from "../src/blas/with-blas.ts";
import { type Team, TeamFunctions } from "../src/team/team.ts";
import { shuffledTeam } from "./shuffled-team.ts";

/** Alignment in bytes that kernels may rely on. */
const alignment = 16;
/** Bytes of a guard, which is placed between blocks and around all blocks. Wider than any vector or tile row. */
const guardBytes = 256;
/**
 * Word that fills unused memory: a NaN as f32 and, in its upper half, as f16 and bf16. The word is neither a mask nor a
 * small number.
 */
const poison = 0x7fc0_de5a;
const pageBytes = 65_536;

interface Block {
  readonly address: number;
  readonly bytes: number;
}

/** Consecutive blocks with guards on both sides. The upper guard starts at the byte after the block's last byte. */
class Layout {
  private end = pageBytes + guardBytes;

  block(bytes: number): Block {
    const address = this.end;
    this.end = Math.ceil((address + bytes + guardBytes) / alignment) * alignment;
    return { address, bytes };
  }

  get bytes(): number {
    return this.end;
  }
}

/** Returns the address of a changed byte outside of `allowed`, or undefined if there is none. */
const strayByte = (before: Uint8Array, after: Uint8Array, allowed: readonly Block[]): number | undefined => {
  let from = pageBytes;
  for (const { address, bytes } of [...allowed, { address: before.length, bytes: 0 }].sort(
    (a, b) => a.address - b.address,
  )) {
    const [kept, seen] = [before.subarray(from, address), after.subarray(from, address)];
    if (Buffer.compare(kept, seen) !== 0) return from + kept.findIndex((byte, i) => byte !== seen[i]);
    from = address + bytes;
  }
  return undefined;
};

const arrayAt = (memory: Uint8Array, { address }: Block, { dtype, shape }: TensorSpec): NdArray => {
  const bytes = memory.slice(address, address + byteLength({ dtype, shape }));
  return new NdArray(dtype, shape, new hostArrayType[dtype](Uint8Array.from(bytes).buffer, 0, elementCount(shape)));
};

class GuardedExecutable implements Executable {
  readonly workspaceBytes = 0;
  readonly collectives: CollectiveOrder;
  private readonly graph: Graph;
  private readonly wasm: WasmExports;
  private readonly memory: WebAssembly.Memory;
  private readonly kernels: KernelTable;
  private readonly team: Team;

  constructor(source: Graph, wasm: WasmExports, memory: WebAssembly.Memory, kernels: KernelTable, team: Team) {
    this.graph = prepareForCpu(source);
    this.kernels = kernels;
    this.collectives = collectiveOrderOf(this.graph);
    this.wasm = wasm;
    this.memory = memory;
    this.team = team;
  }

  /**
   * Runs the graph. Each value has its own block, filled with NaN. After each kernel, all memory except the outputs and
   * scratch memory of the kernel must be unchanged.
   */
  async run(inputs: readonly DeviceArray[]): Promise<DeviceArray[]> {
    const { graph, kernels, team } = this;
    const nodes = graph.nodes.map((node) => kernelNodeOf(graph, node));
    const layout = new Layout();
    const values = new Map<string, Block>();
    for (const node of graph.nodes)
      node.specs.forEach((spec, output) =>
        values.set(valueKey({ node: node.id, output }), layout.block(byteLength(spec))),
      );
    const scratch = nodes.map((node) => layout.block(kernels[node.op]?.scratchBytes?.(node, team.threads) ?? 0));
    const constants = nodes.map((node) => {
      const bytes = kernels[node.op]?.constants?.(node) ?? new Uint8Array(0);
      return { bytes, block: layout.block(bytes.byteLength) };
    });
    const missing = layout.bytes - this.memory.buffer.byteLength;
    if (missing > 0) this.memory.grow(Math.ceil(missing / pageBytes));
    const memory = new Uint8Array(this.memory.buffer, 0, layout.bytes);
    new Uint32Array(this.memory.buffer, pageBytes, (layout.bytes - pageBytes) / 4).fill(poison);
    graph.inputs.forEach((id, i) =>
      memory.set(hostArray(inputs[i]!).bytes(), values.get(valueKey({ node: id, output: 0 }))!.address),
    );
    for (const { bytes, block } of constants) memory.set(bytes, block.address);
    const before = memory.slice();
    graph.nodes.forEach((node, i) => {
      if (node.op === "input" || node.specs.every((spec) => byteLength(spec) === 0)) return;
      const outputs = node.specs.map((_, output) => values.get(valueKey({ node: node.id, output }))!);
      const operands = node.inputs.map((ref) => values.get(valueKey(ref))!);
      if (roleOf(node) === "barrier") {
        // In executors with a memory plan, the output is a view. Here each value has its own block, so the bytes are
        // copied.
        for (const [output, { address, bytes }] of outputs.entries())
          for (const image of [memory, before])
            image.copyWithin(address, operands[output]!.address, operands[output]!.address + bytes);
        return;
      }
      const call = kernels[node.op]!.bind(nodes[i]!, this.wasm, this.memory, team);
      call(
        Int32Array.from(operands, ({ address }) => address),
        Int32Array.from(outputs, ({ address }) => address),
        scratch[i]!.address,
        constants[i]!.block.address,
      );
      const allowed = [...outputs, scratch[i]!];
      const stray = strayByte(before, memory, allowed);
      if (stray !== undefined) {
        const nearest = allowed.map(({ address, bytes }) =>
          stray < address ? stray - address : stray - address - bytes + 1,
        );
        throw new Error(
          `${node.op} of ${nodes[i]!.inputs.map(formatSpec).join(", ")} wrote outside its outputs and scratch: bytes from the ends of these blocks ${nearest.join(", ")}`,
        );
      }
      for (const { address, bytes } of allowed) before.set(memory.subarray(address, address + bytes), address);
    });
    return graph.outputs.map((ref) =>
      deviceArray(
        arrayAt(memory, values.get(valueKey(ref))!, graph.nodes.find(({ id }) => id === ref.node)!.specs[ref.output]!),
      ),
    );
  }

  release(): void {}
}

// Casts a host array to an array of this backend, whose arrays are host arrays.
const deviceArray = (array: NdArray): DeviceArray => array as unknown as DeviceArray;
const hostArray = (array: DeviceArray): NdArray => array as unknown as NdArray;

/**
 * Creates a backend with the kernels of a build but without memory plan and arena. Values never share memory. Detects
 * kernels that write a byte outside of their own memory, or read memory that was never written.
 *
 * @param tamper Adds faults to the kernels, to test that they are detected.
 * @param blas BLAS that runs the contractions that it prefers.
 */
export const createGuardedBackend = async (
  build: WasmBuild,
  tamper: (wasm: WasmExports, memory: WebAssembly.Memory) => WasmExports = (wasm) => wasm,
  blas?: Blas,
): Promise<Backend> => {
  const memory = createSharedMemory(512 * 2 ** 20);
  const wasm = tamper(instantiateWasm(await compileWasm(build), memory), memory);
  const kernels = blas === undefined ? ownKernels : withBlas(ownKernels, blas);
  // Every kernel runs in parts. Each part must write only to its own memory, and has its own scratch memory.
  const team = shuffledTeam(3, new TeamFunctions(wasm, blas?.open(memory)));
  return {
    name: `guarded ${build}`,
    compile: (graph) => new GuardedExecutable(graph, wasm, memory, kernels, team),
    upload: deviceArray,
    download: async (array) => hostArray(array),
    free: () => {},
  };
};

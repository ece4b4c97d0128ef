import {
  type Backend,
  byteLength,
  elementCount,
  type Graph,
  NdArray,
  spanned,
  UnsupportedError,
} from "@skein/tensor-core";
import {
  ArrayLedger,
  type CompileOptions,
  type Executable,
  expandCompositions,
  hostArrayType,
  kernelNodeOf,
  kernelTable,
  missingKernelReason,
  optimize,
  planMemory,
  roleOf,
  type WasmMemory,
  type WasmModule,
  widenHalf,
} from "@skein/tensor-core/backend";
import type { Blas } from "./blas.ts";
import { Arena, createSharedMemory } from "./arena.ts";
import { CpuExecutable } from "./executable.ts";
import { hasInstruction } from "./fused-lowering.ts";
import { TILE } from "../assembly/fused-blocks.ts";
import type { Kernel } from "./kernel.ts";
import type { WasmExports } from "./wasm-exports.ts";
import { type KernelTable, kernels as ownKernels } from "./kernel-table.ts";
import { soloTeam, type Team, TeamFunctions } from "./team/team.ts";
import { compileWasm, detectBuild, instantiateWasm, type WasmBuild } from "./wasm-build.ts";

export interface CpuBackendOptions {
  /** Memory shared by all ranks of the process. Default: a new memory. */
  readonly memory?: WasmMemory;
  /**
   * Compiled WebAssembly build, which can be posted to a worker. Default: the fastest build that the host supports is
   * compiled.
   */
  readonly module?: WasmModule;
  /** WebAssembly build to use; for tests and comparisons. Default: the fastest build that the host supports. */
  readonly build?: WasmBuild;
  /**
   * Number of threads that share the work of a kernel: the calling thread and helper threads, which `close` stops.
   * Results are bitwise identical for any number of threads. Default: 1.
   */
  readonly threads?: number;
  /**
   * A BLAS, used for all products, convolutions and attentions that the BLAS computes faster than WebAssembly. Default:
   * WebAssembly computes everything.
   */
  readonly blas?: Blas | undefined;
  /**
   * Kernels of user-defined operators (`defineOperator`). An operator without a kernel runs as its composition.
   * Default: none.
   */
  readonly kernels?: readonly Kernel[];
}

/** A CPU backend with access to its memory. */
export interface CpuBackend extends Backend {
  readonly arena: Arena;
  readonly memory: WasmMemory;
  /** Identity of the BLAS in use. Undefined: the backend uses no BLAS. */
  readonly blas: string | undefined;
  readonly threads: number;
  /**
   * Stops the helper threads. The backend cannot be used afterwards. Running helper threads do not prevent the process
   * from exiting.
   */
  close(): Promise<void>;
}

/**
 * Returns all reasons why an optimized graph cannot run on this backend. Empty if the graph can run.
 *
 * @example
 * ```ts
 * const { graph } = trace((x: Tensor) => add(x, 1), [{ dtype: "f32", shape: [2] }]);
 * console.log(unsupportedOnCpu(prepareForCpu(graph))); // []
 * ```
 */
export const unsupportedOnCpu = (graph: Graph, kernels: KernelTable = ownKernels): string[] => {
  const reasons = graph.nodes.flatMap((node) => {
    if (roleOf(node) !== undefined) return [];
    const kernel = kernels[node.op];
    const reason =
      kernel === undefined ? missingKernelReason(node.op, kernels) : kernel.refuses?.(kernelNodeOf(graph, node));
    return reason === undefined ? [] : [`${node.op}${node.scope === "" ? "" : ` (${node.scope})`}: ${reason}`];
  });
  return [...new Set(reasons)];
};

const checkSupport = (graph: Graph, kernels: KernelTable): void => {
  const reasons = unsupportedOnCpu(graph, kernels);
  if (reasons.length > 0)
    throw new UnsupportedError(
      `the cpu backend cannot run this graph:\n${reasons.map((reason) => `  ${reason}`).join("\n")}`,
    );
};

const expand = (source: Graph, kernels: KernelTable): Graph =>
  expandCompositions(source, ({ name }, node) =>
    kernels[name] === undefined ? hasInstruction(node) : kernels[name].refuses?.(node) === undefined,
  );

/**
 * Returns the graph that is compiled for a traced graph: compositions replace operators without a kernel or
 * instruction, the standard passes run, and 16-bit products are widened.
 *
 * @example
 * ```ts
 * const { graph } = trace((x: Tensor) => add(multiply(x, 2), 1), [{ dtype: "f32", shape: [2] }]);
 * console.log(prepareForCpu(graph).nodes.some(({ op }) => op === "fused")); // true
 * ```
 */
export const prepareForCpu = (
  source: Graph,
  collectiveOrder?: readonly number[],
  kernels: KernelTable = ownKernels,
): Graph =>
  optimize(widenHalf(expand(source, kernels)), { fuse: { maxTile: TILE }, schedule: collectiveOrder ?? true });

/** Components of a CPU backend. */
export interface BackendParts {
  readonly arena: Arena;
  readonly wasm: WasmExports;
  readonly kernels: KernelTable;
  readonly team: Team;
}

/** Creates a backend from its components. */
export const backendOf = ({ arena, wasm, kernels, team }: BackendParts): Backend => {
  const ledger = new ArrayLedger<number>((address) => arena.release(address));
  arena.describeUse = () =>
    `${ledger.describeLive()}, and workspaces and blocks of threads ${arena.bytesInUse - ledger.live.bytes} bytes`;
  return {
    name: "cpu",
    compile: (source: Graph, { donate = [], spanSink, collectiveOrder }: CompileOptions = {}): Executable => {
      const host = <T>(name: string, work: () => T): T => spanned(spanSink, { name, track: "host" }, work);
      const graph = host("optimize", () => prepareForCpu(source, collectiveOrder, kernels));
      checkSupport(graph, kernels);
      const plan = host("plan memory", () => planMemory(graph, { donate }));
      return host(
        "bind kernels",
        () => new CpuExecutable({ graph, plan, arena, wasm, donate, spanSink, ledger, kernels, team }),
      );
    },
    workspaceBytes: (source, { donate = [] } = {}) =>
      planMemory(prepareForCpu(source, undefined, kernels), { donate }).workspaceBytes,
    upload: (array) => {
      const address = arena.allocate(byteLength(array));
      arena.bytesAt(address, byteLength(array)).set(array.bytes());
      return ledger.open({ dtype: array.dtype, shape: array.shape }, address);
    },
    download: async (array) => {
      const { memory: address, bytes } = ledger.own(array);
      const copy = new ArrayBuffer(bytes);
      new Uint8Array(copy).set(arena.bytesAt(address, bytes));
      return new NdArray(array.dtype, array.shape, new hostArrayType[array.dtype](copy, 0, elementCount(array.shape)));
    },
    free: (array) => ledger.free(ledger.own(array)),
    reclaim: () => ledger.reclaim(),
  };
};

/**
 * Creates the WebAssembly backend of one rank. Kernels come from the fastest build that the host supports; arrays are
 * allocated in an arena of the shared memory.
 *
 * @throws HostError if WebAssembly has no shared memory. A page that is not cross-origin isolated has shared memory for
 * one thread only. @throws HelperError if a helper thread cannot be started.
 * @example
 * ```ts
 * const backend = await createCpuBackend(); // { threads: 2 } adds a thread
 * const layer = jit((x: Tensor, w: Tensor) => relu(matmul(x, w)), backend);
 * const y = await layer(NdArray.from([1, 2, 3, 4], [2, 2]), NdArray.from([1, -1, 0, 1], [2, 2]));
 * console.log((await backend.download(y)).toNumbers()); // [1, 1, 3, 1]
 * ```
 */
export const createCpuBackend = async (options: CpuBackendOptions = {}): Promise<CpuBackend> => {
  const { blas, threads = 1 } = options;
  const memory = options.memory ?? createSharedMemory();
  const module = options.module ?? (await compileWasm(options.build ?? (await detectBuild())));
  const wasm = instantiateWasm(module, memory);
  const arena = new Arena(memory);
  const kernels = kernelTable(
    blas === undefined ? ownKernels : (await import("./blas/with-blas.ts")).withBlas(ownKernels, blas),
    options.kernels ?? [],
    "bind",
  );
  const functions = new TeamFunctions(wasm, blas?.open(memory));
  const helped =
    threads === 1
      ? undefined
      : await (await import("./team/open-team.ts")).openTeam({ threads, module, arena, functions, blas });
  return {
    ...backendOf({ arena, wasm, kernels, team: helped ?? soloTeam(functions) }),
    arena,
    memory,
    blas: blas?.identity,
    threads,
    close: async () => helped?.close(),
  };
};

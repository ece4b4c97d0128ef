import type { Backend, DeviceArray, Executable } from "./execution/backend.ts";
import type { Communicators } from "./communicator.ts";
import { agreeOnOrder, broadcastFailure } from "./execution/agree-on-order.ts";
import { retryAfterReclaim } from "./execution/memory-reclaimer.ts";
import { type Mesh, type MeshCoordinates, requireCoordinates } from "./graph/emit.ts";
import { describe, isPromise, isSpec } from "./describe.ts";
import { ArgumentError } from "./errors.ts";
import { type Graph, keepDefinitions } from "./graph/graph.ts";
import type { Tensor } from "./graph/tensor.ts";
import { trace } from "./tracing/trace.ts";
import { planMemory } from "./memory/memory-plan.ts";
import { NdArray } from "./nd-array.ts";
import { optimize } from "./passes/optimize.ts";
import { recomputeWithin } from "./passes/memory-budget/recompute-within.ts";
import { formatSpec, sameSpec, type TensorSpec } from "./shape.ts";
import { spanned, type SpanSink } from "./span-sink.ts";
import { flattenTree, leavesAlong, type MapTree, type TreeStructure, unflattenTree } from "./tree.ts";

/** Compilation options of a function: donated arguments, mesh and rank, and passes. */
export interface JitOptions {
  /** Indices of donated arguments. Results may overwrite the memory of donated arrays. Default: none. */
  readonly donate?: readonly number[];
  /** Number of ranks along each mesh axis. Default: the sizes of `communicators`. */
  readonly mesh?: Mesh;
  /**
   * Mesh coordinates of the rank that the function is traced for; `meshCoordinate` returns these coordinates. Default:
   * the ranks of `communicators`.
   */
  readonly place?: MeshCoordinates;
  readonly communicators?: Communicators;
  readonly spanSink?: SpanSink;
  /** Name of the function in traces. Default: `name` of the JavaScript function. */
  readonly name?: string;
  /**
   * Maximum number of cached executables, one per input signature, each with its workspace. If exceeded, the least
   * recently called executable is released. Must be equal on all ranks, because ranks compile together. Default: 32.
   */
  readonly maxExecutables?: number;
  /** Graph passes, such as `mixedPrecision`, applied in order between tracing and compilation. Default: none. */
  readonly passes?: readonly ((graph: Graph) => Graph)[];
  /**
   * Maximum bytes of intermediate values. If the values saved for the backward pass need more, some of them are
   * recomputed, see `recomputeWithin`. Default: no limit.
   */
  readonly maxWorkspaceBytes?: number;
}

/** Trees of arrays that a compiled function accepts: device arrays, or host arrays, which are uploaded for the call. */
export type ArrayTree<T> = MapTree<T, Tensor, DeviceArray | NdArray>;

export interface CompiledFunction<Args extends readonly unknown[], Result> {
  (...args: { [K in keyof Args]: ArrayTree<Args[K]> }): Promise<MapTree<Result, Tensor, DeviceArray>>;
  /** Number of cached executables, one per signature; at most `maxExecutables`. */
  readonly cacheSize: number;
  /** Releases the workspaces of all executables. */
  release(): void;
}

/** Cache entry of one input signature. */
interface CacheEntry {
  readonly structure: TreeStructure;
  readonly specs: readonly TensorSpec[];
  /** Compiled function; a promise until all ranks have agreed on the order of collectives. */
  executable: Executable | Promise<Executable>;
  readonly outputs: TreeStructure;
}

const releaseEntry = ({ executable }: CacheEntry): void => {
  if (executable instanceof Promise)
    executable.then(
      (made) => made.release(),
      () => undefined, // the caller that compiled receives the error
    );
  else executable.release();
};

/**
 * Compiles a plain function over trees of tensors for a backend. The function is traced once per input signature (tree
 * structure, dtypes, shapes); later calls run the compiled graph. A signature is compiled again only after calls with
 * `maxExecutables` other signatures.
 *
 * @returns An async function that accepts arrays and returns device arrays. Host arrays are uploaded before the run and
 * freed after the run. The caller owns the returned arrays. With communicators of more than one rank, all ranks of the
 * world compile together and agree on the order of collectives. Each rank traces for its own coordinates
 * (`meshCoordinate`), so graphs may differ between ranks in everything except collectives.
 * @throws ShapeError while tracing, UnsupportedError while compiling, CollectiveOrderError if the collectives of the
 * ranks are incompatible, ArgumentError if a limit is not a positive integer, or if no choice of recomputed values
 * meets `maxWorkspaceBytes`.
 * @example
 * ```ts
 * const backend = referenceBackend();
 * const double = jit((x: Tensor) => multiply(x, 2), backend); // traced and compiled at the first call
 * const y = await backend.download(await double(NdArray.from([1, 2])));
 * console.log(y.toNumbers()); // [2, 4]
 * ```
 */
export const jit = <Args extends readonly unknown[], Result>(
  fn: (...args: Args) => Result,
  backend: Backend,
  options: JitOptions = {},
): CompiledFunction<Args, Result> => {
  if (typeof fn !== "function")
    throw new ArgumentError(
      `jit: the first argument is ${describe(fn)}, expected a function; pass the function itself: jit(fn, backend)`,
    );
  if (typeof backend?.compile !== "function")
    throw new ArgumentError(
      `jit: its backend is ${describe(backend)}; ${isPromise(backend) ? "await it: jit(fn, await …)" : "pass a backend: jit(fn, referenceBackend()), or one of @skein/cpu-kernels or @skein/gpu-kernels"}`,
    );
  const { maxExecutables = 32, donate: donatedPositions = [], passes = [], maxWorkspaceBytes } = options;
  for (const [name, list] of [
    ["donate", donatedPositions],
    ["passes", passes],
  ] as const)
    if (!Array.isArray(list))
      throw new ArgumentError(`jit: ${name} is ${describe(list)}, but it must be a list; put the value into brackets`);
  if (!Number.isInteger(maxExecutables) || maxExecutables < 1)
    throw new ArgumentError(
      `maxExecutables is ${maxExecutables}; it must be a whole number of executables to keep, 1 or more`,
    );
  if (maxWorkspaceBytes !== undefined && !(maxWorkspaceBytes > 0))
    throw new ArgumentError(`maxWorkspaceBytes is ${maxWorkspaceBytes}; it must be a number of bytes above 0`);
  const recomputeToFit = (graph: Graph, maxBytes: number, donate: readonly number[]): Graph =>
    recomputeWithin(graph, {
      maxBytes,
      workspaceBytes: (one) =>
        backend.workspaceBytes?.(one, { donate }) ?? planMemory(optimize(one), { donate }).workspaceBytes,
    }).graph;
  /** Cache entries, most recently called first. */
  const cache: CacheEntry[] = [];
  const groups = Object.entries(options.communicators ?? {});
  const mesh: Mesh = options.mesh ?? Object.fromEntries(groups.map(([axis, { worldSize }]) => [axis, worldSize]));
  const place: MeshCoordinates =
    options.place ??
    // If a communicator's size differs from the mesh, running the graph throws an error that names the axis.
    Object.fromEntries(
      groups.flatMap(([axis, { rank, worldSize }]) => (mesh[axis] === worldSize ? [[axis, rank]] : [])),
    );
  requireCoordinates("jit", mesh, place);
  let compiledBefore = false;

  const reclaim = backend.reclaim === undefined ? undefined : (): Promise<void> => backend.reclaim!();

  const compile = (args: readonly unknown[]): CacheEntry | Promise<CacheEntry> => {
    const isFirst = !compiledBefore;
    compiledBefore = true;
    const refuse = (error: unknown): Promise<never> => {
      // Report only at the first call: later, a rank that has already compiled the signature would not receive the
      // report.
      if (!isFirst || options.communicators === undefined) throw error;
      return reportFailure(error, options.communicators);
    };
    try {
      const entry = retryAfterReclaim(() => compileAlone(args), reclaim);
      return entry instanceof Promise ? entry.catch(refuse) : entry;
    } catch (error) {
      return refuse(error);
    }
  };

  const reportFailure = async (error: unknown, communicators: Communicators): Promise<never> => {
    await broadcastFailure(error, communicators);
    throw error;
  };

  const compileAlone = (args: readonly unknown[]): CacheEntry => {
    const { spanSink } = options;
    const host = <T>(name: string, work: () => T): T => spanned(spanSink, { name, track: "host" }, work);
    const traced = host("trace", () => trace(fn, args as unknown as Args, { mesh, place }));
    let end = 0;
    const donate = args.flatMap((arg, position) => {
      const begin = end;
      end += flattenTree(arg).leaves.length;
      return donatedPositions.includes(position) ? Array.from({ length: end - begin }, (_, i) => begin + i) : [];
    });
    const transformed = host("passes", () =>
      passes.reduce((current, pass) => keepDefinitions(traced.graph, pass(current)), traced.graph),
    );
    const graph =
      maxWorkspaceBytes === undefined
        ? transformed
        : host("choose what to recompute", () => recomputeToFit(transformed, maxWorkspaceBytes, donate));
    const executable = agreeOnOrder(
      (collectiveOrder) =>
        host(`compile for ${backend.name}`, () =>
          backend.compile(graph, {
            donate,
            ...(collectiveOrder && { collectiveOrder }),
            ...(spanSink && { spanSink }),
          }),
        ),
      options.communicators ?? {},
      spanSink,
    );
    const specs = traced.graph.inputs.map((id) => traced.graph.nodes[id]!.specs[0]!);
    const entry: CacheEntry = { structure: traced.inputs, specs, executable, outputs: traced.outputs };
    cache.unshift(entry);
    cache.splice(maxExecutables).forEach(releaseEntry);
    return entry;
  };

  /** Waits for the executable of a cache entry. Removes the entry if the ranks could not agree on an order. */
  const awaitExecutable = async (entry: CacheEntry): Promise<Executable> => {
    try {
      return (entry.executable = await entry.executable);
    } catch (error) {
      if (cache.includes(entry)) cache.splice(cache.indexOf(entry), 1);
      throw error;
    }
  };

  const call = async (...args: readonly unknown[]): Promise<unknown> => {
    for (const [position, entry] of cache.entries()) {
      const leaves = leavesAlong<TensorSpec>(entry.structure, args);
      if (leaves?.every((leaf, i) => isSpec(leaf) && sameSpec(leaf, entry.specs[i]!)) !== true) continue;
      if (position > 0) cache.unshift(...cache.splice(position, 1));
      return run(entry, leaves);
    }
    const { leaves } = flattenTree<TensorSpec>(args);
    const entry = compileAsSpan(args, leaves);
    // run without awaiting if already compiled, because another call may release the executable
    return run(entry instanceof Promise ? await entry : entry, leaves);
  };

  /** Compiles a cache entry, and records a span that ends when all ranks have agreed on the order of collectives. */
  const compileAsSpan = (args: readonly unknown[], leaves: readonly TensorSpec[]): CacheEntry | Promise<CacheEntry> => {
    const { spanSink, name = fn.name } = options;
    if (spanSink === undefined) return compile(args);
    const span = {
      name: `compile ${name}`.trimEnd(),
      track: "host",
      args: { signature: leaves.map(formatSpec).join(" ") },
    } as const;
    return spanned(spanSink, span, () => {
      const entry = compile(args);
      if (entry instanceof Promise) return entry;
      return entry.executable instanceof Promise ? awaitExecutable(entry).then(() => entry) : entry;
    });
  };

  const run = async (entry: CacheEntry, leaves: readonly TensorSpec[]): Promise<unknown> => {
    const { outputs } = entry;
    const executable = entry.executable instanceof Promise ? await awaitExecutable(entry) : entry.executable;
    const uploaded: DeviceArray[] = [];
    try {
      const inputs: DeviceArray[] = [];
      for (const leaf of leaves) {
        if (leaf instanceof NdArray) {
          const upload = retryAfterReclaim(() => backend.upload(leaf), reclaim);
          // `upload` is a promise only if memory is full. Without an await, the run claims its arguments before the
          // caller can free them.
          const array = upload instanceof Promise ? await upload : upload;
          uploaded.push(array);
          inputs.push(array);
        } else inputs.push(leaf as DeviceArray);
      }
      return unflattenTree(outputs, await executable.run(inputs, options.communicators));
    } finally {
      // The run no longer needs the uploaded arrays, unless it failed before it began.
      for (const array of uploaded) backend.free(array);
    }
  };

  const release = (): void => {
    cache.splice(0).forEach(releaseEntry);
  };
  return Object.defineProperty(Object.assign(call, { release }), "cacheSize", {
    get: () => cache.length,
  }) as unknown as CompiledFunction<Args, Result>;
};

/**
 * Runs a function once on host arrays and downloads the results, for interactive use.
 *
 * @example
 * ```ts
 * const squared = await evaluate((x: Tensor) => multiply(x, x), referenceBackend())(NdArray.from([1, 2, 3]));
 * console.log(squared.toNumbers()); // [1, 4, 9]
 * ```
 */
export const evaluate =
  <Args extends readonly unknown[], Result>(
    fn: (...args: Args) => Result,
    backend: Backend,
    options: JitOptions = {},
  ) =>
  async (...args: { [K in keyof Args]: ArrayTree<Args[K]> }): Promise<MapTree<Result, Tensor, NdArray>> => {
    const compiled = jit(fn, backend, options);
    try {
      const { leaves, structure } = flattenTree<DeviceArray>(await compiled(...args));
      const downloaded = await Promise.all(leaves.map((leaf) => backend.download(leaf)));
      for (const leaf of leaves) backend.free(leaf);
      return unflattenTree(structure, downloaded);
    } finally {
      compiled.release();
    }
  };

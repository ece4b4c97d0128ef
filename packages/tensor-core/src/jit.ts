import type { Backend, DeviceArray, Executable } from "./execution/backend.ts";
import type { Communicators } from "./communicator.ts";
import { agreeOnOrder, tellFailure } from "./execution/agree-on-order.ts";
import { retryAfterReclaim } from "./execution/memory-reclaimer.ts";
import { type Mesh, type MeshPlace, requirePlace } from "./graph/emit.ts";
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

/** How a function is compiled: what it may overwrite, and for which rank of which mesh. */
export interface JitOptions {
  /** Positions of arguments whose arrays are given away, so that results may be written into them. Default: none. */
  readonly donate?: readonly number[];
  /** Ranks along each mesh axis; taken from `communicators` where absent. */
  readonly mesh?: Mesh;
  /**
   * The rank that functions are traced for: what `meshPlace` tells them. Taken from `communicators` where absent.
   */
  readonly place?: MeshPlace;
  readonly communicators?: Communicators;
  readonly spanSink?: SpanSink;
  /** What the function is called in traces. Default: its own name. */
  readonly name?: string;
  /**
   * Most signatures that are kept compiled, each with a workspace; beyond, the one that was not called for longest is
   * released. The same on all ranks, which compile together. Default: 32.
   */
  readonly maxExecutables?: number;
  /** Rewrites of the traced graph, in order, before it is compiled: `mixedPrecision`. Default: none. */
  readonly passes?: readonly ((graph: Graph) => Graph)[];
  /**
   * Most bytes of intermediates. Where keeping all that backward reads takes more, it is chosen what to compute again:
   * see `recomputeWithin`. Default: no bound.
   */
  readonly maxWorkspaceBytes?: number;
}

/** Trees of arrays that a compiled function accepts: on its device, or on the host (uploaded for the call). */
export type ArrayTree<T> = MapTree<T, Tensor, DeviceArray | NdArray>;

export interface CompiledFunction<Args extends readonly unknown[], Result> {
  (...args: { [K in keyof Args]: ArrayTree<Args[K]> }): Promise<MapTree<Result, Tensor, DeviceArray>>;
  /** Executables at hand, one per signature: at most `maxExecutables`. */
  readonly cacheSize: number;
  /** Give back the workspaces of all executables. */
  release(): void;
}

/** One signature of a compiled function. */
interface CacheEntry {
  readonly structure: TreeStructure;
  readonly specs: readonly TensorSpec[];
  /** A promise until all ranks have agreed on the order of collectives. */
  executable: Executable | Promise<Executable>;
  readonly outputs: TreeStructure;
}

const giveBack = ({ executable }: CacheEntry): void => {
  if (executable instanceof Promise)
    executable.then(
      (made) => made.release(),
      () => undefined, // whoever called hears it
    );
  else executable.release();
};

/**
 * Compile a plain function over trees of tensors for a backend. The function is traced once per input signature (tree
 * structure, dtypes, shapes) and run from the compiled graph ever after, until `maxExecutables` other signatures were
 * called since.
 *
 * @returns an async function from arrays to arrays on the device. Host arrays among the arguments are uploaded for the
 * call and freed after it. Returned arrays belong to the caller. With communicators of more than one rank, all ranks of
 * their world compile together and agree on the order of collectives. Each traces for its own place (`meshPlace`), so
 * their graphs may differ beside those.
 * @throws ShapeError while tracing, UnsupportedError while compiling, CollectiveOrderError where ranks' collectives do
 * not fit together, ArgumentError for a bound that is no whole number of 1 or more, or that no choice of what to
 * recompute meets.
 * @example
 * const square = jit((x: Tensor) => multiply(x, x), backend);
 * const y = await backend.download(await square(NdArray.from([1, 2, 3])));
 */
export const jit = <Args extends readonly unknown[], Result>(
  fn: (...args: Args) => Result,
  backend: Backend,
  options: JitOptions = {},
): CompiledFunction<Args, Result> => {
  if (typeof fn !== "function")
    throw new ArgumentError(
      `jit: ${describe(fn)} was given where a function is due; pass the function itself: jit(fn, backend)`,
    );
  if (typeof backend?.compile !== "function")
    throw new ArgumentError(
      `jit: its backend is ${describe(backend)}; ${isPromise(backend) ? "await what makes it: jit(fn, await …)" : "pass one: jit(fn, referenceBackend()), or that of @skein/cpu-kernels or @skein/gpu-kernels"}`,
    );
  const { maxExecutables = 32, donate: given = [], passes = [], maxWorkspaceBytes } = options;
  for (const [name, list] of [
    ["donate", given],
    ["passes", passes],
  ] as const)
    if (!Array.isArray(list))
      throw new ArgumentError(`jit: ${name} is ${describe(list)}, but it is a list; put it into brackets`);
  if (!Number.isInteger(maxExecutables) || maxExecutables < 1)
    throw new ArgumentError(
      `maxExecutables is ${maxExecutables}; it is a whole number of executables to keep, 1 or more`,
    );
  if (maxWorkspaceBytes !== undefined && !(maxWorkspaceBytes > 0))
    throw new ArgumentError(`maxWorkspaceBytes is ${maxWorkspaceBytes}; it is a number of bytes, above 0`);
  const within = (graph: Graph, maxBytes: number, donate: readonly number[]): Graph =>
    recomputeWithin(graph, {
      maxBytes,
      workspaceBytes: (one) =>
        backend.workspaceBytes?.(one, { donate }) ?? planMemory(optimize(one), { donate }).workspaceBytes,
    }).graph;
  /** Called last comes first. */
  const cache: CacheEntry[] = [];
  const groups = Object.entries(options.communicators ?? {});
  const mesh: Mesh = options.mesh ?? Object.fromEntries(groups.map(([axis, { worldSize }]) => [axis, worldSize]));
  const place: MeshPlace =
    options.place ??
    // A communicator of another size than the mesh is refused when the graph is run, with its axis.
    Object.fromEntries(
      groups.flatMap(([axis, { rank, worldSize }]) => (mesh[axis] === worldSize ? [[axis, rank]] : [])),
    );
  requirePlace("jit", mesh, place);
  let compiledBefore = false;

  const reclaim = backend.reclaim === undefined ? undefined : (): Promise<void> => backend.reclaim!();

  const compile = (args: readonly unknown[]): CacheEntry | Promise<CacheEntry> => {
    const isFirst = !compiledBefore;
    compiledBefore = true;
    const refuse = (error: unknown): Promise<never> => {
      // Later on, ranks that have the signature compiled would not hear it.
      if (!isFirst || options.communicators === undefined) throw error;
      return failed(error, options.communicators);
    };
    try {
      const entry = retryAfterReclaim(() => compileAlone(args), reclaim);
      return entry instanceof Promise ? entry.catch(refuse) : entry;
    } catch (error) {
      return refuse(error);
    }
  };

  const failed = async (error: unknown, communicators: Communicators): Promise<never> => {
    await tellFailure(error, communicators);
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
      return given.includes(position) ? Array.from({ length: end - begin }, (_, i) => begin + i) : [];
    });
    const passed = host("passes", () =>
      passes.reduce((current, pass) => keepDefinitions(traced.graph, pass(current)), traced.graph),
    );
    const graph =
      maxWorkspaceBytes === undefined
        ? passed
        : host("choose what to recompute", () => within(passed, maxWorkspaceBytes, donate));
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
    cache.splice(maxExecutables).forEach(giveBack);
    return entry;
  };

  /** The executable of an entry, at once where it is there. One that ranks could not agree on is forgotten. */
  const settled = async (entry: CacheEntry): Promise<Executable> => {
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
    // at once where it is there: another call may release it later
    return run(entry instanceof Promise ? await entry : entry, leaves);
  };

  /** Compile, and record it until all ranks have agreed. */
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
      return entry.executable instanceof Promise ? settled(entry).then(() => entry) : entry;
    });
  };

  const run = async (entry: CacheEntry, leaves: readonly TensorSpec[]): Promise<unknown> => {
    const { outputs } = entry;
    const executable = entry.executable instanceof Promise ? await settled(entry) : entry.executable;
    const uploaded: DeviceArray[] = [];
    try {
      const inputs: DeviceArray[] = [];
      for (const leaf of leaves) {
        if (leaf instanceof NdArray) {
          const upload = retryAfterReclaim(() => backend.upload(leaf), reclaim);
          // Wait only if the memory is full: else the run has its arguments before the caller can free them.
          const array = upload instanceof Promise ? await upload : upload;
          uploaded.push(array);
          inputs.push(array);
        } else inputs.push(leaf as DeviceArray);
      }
      return unflattenTree(outputs, await executable.run(inputs, options.communicators));
    } finally {
      // Those that the run was given have ended, unless it failed before it began.
      for (const array of uploaded) backend.free(array);
    }
  };

  const release = (): void => {
    cache.splice(0).forEach(giveBack);
  };
  return Object.defineProperty(Object.assign(call, { release }), "cacheSize", {
    get: () => cache.length,
  }) as unknown as CompiledFunction<Args, Result>;
};

/**
 * Run a function once on host arrays and bring the results back: the interactive door.
 *
 * @example const y = await evaluate((x: Tensor) => multiply(x, x), referenceBackend())(NdArray.from([1, 2, 3]));
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

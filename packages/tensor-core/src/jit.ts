import type { Backend, DeviceArray, Executable } from "./backend.ts";
import type { Communicators } from "./communicator.ts";
import type { Mesh } from "./graph/emit.ts";
import type { Tensor } from "./graph/tensor.ts";
import { trace } from "./graph/trace.ts";
import { NdArray } from "./nd-array.ts";
import { formatSpec, type TensorSpec } from "./shape.ts";
import type { Tracer } from "./tracer.ts";
import { flattenTree, type MapTree, type TreeStructure, unflattenTree } from "./tree.ts";

export interface JitOptions {
  /** Positions of arguments whose arrays are given away, so that results may be written into them. Default: none. */
  readonly donate?: readonly number[];
  /** Ranks along each mesh axis; taken from `communicators` where absent. */
  readonly mesh?: Mesh;
  readonly communicators?: Communicators;
  readonly tracer?: Tracer;
}

/** Trees of arrays that a compiled function accepts: on its device, or on the host (uploaded for the call). */
export type ArrayTree<T> = MapTree<T, Tensor, DeviceArray | NdArray>;

export interface CompiledFunction<Args extends readonly unknown[], Result> {
  (...args: { [K in keyof Args]: ArrayTree<Args[K]> }): Promise<MapTree<Result, Tensor, DeviceArray>>;
  /** Executables made so far, one per signature. */
  readonly cacheSize: number;
  /** Give back the workspaces of all executables. */
  release(): void;
}

interface CacheEntry {
  readonly executable: Executable;
  readonly outputs: TreeStructure;
}

/**
 * Compile a plain function over trees of tensors for a backend. The function is traced once per input signature
 * (tree structure, dtypes, shapes) and run from the compiled graph ever after.
 *
 * @returns an async function from arrays to arrays on the device. Host arrays among the arguments are uploaded for the
 * call and freed after it. Returned arrays belong to the caller.
 * @throws ShapeError while tracing, UnsupportedError while compiling.
 * @example
 * const square = jit((x: Tensor) => multiply(x, x), backend);
 * const y = await backend.download(await square(NdArray.from([1, 2, 3])));
 */
export const jit = <Args extends readonly unknown[], Result>(fn: (...args: Args) => Result, backend: Backend, options: JitOptions = {}): CompiledFunction<Args, Result> => {
  const cache = new Map<string, CacheEntry>();
  const mesh = options.mesh ?? Object.fromEntries(Object.entries(options.communicators ?? {}).map(([axis, group]) => [axis, group.worldSize]));

  const compile = (args: readonly unknown[]): CacheEntry => {
    const traced = trace(fn, args as unknown as Args, { mesh });
    let first = 0;
    const donate = args.flatMap((arg, position) => {
      const count = flattenTree(arg).leaves.length;
      const indices = Array.from({ length: count }, (_, i) => first + i);
      first += count;
      return options.donate?.includes(position) ? indices : [];
    });
    return { executable: backend.compile(traced.graph, { donate, ...(options.tracer && { tracer: options.tracer }) }), outputs: traced.outputs };
  };

  const call = async (...args: readonly unknown[]): Promise<unknown> => {
    const { leaves, structure } = flattenTree<TensorSpec>(args);
    const signature = `${JSON.stringify(structure)} ${leaves.map(formatSpec).join(" ")}`;
    let entry = cache.get(signature);
    if (entry === undefined) {
      entry = compile(args);
      cache.set(signature, entry);
    }
    const donated = new Set(args.flatMap((arg, position) => (options.donate?.includes(position) ? flattenTree<TensorSpec>(arg).leaves : [])));
    const uploaded: DeviceArray[] = [];
    const inputs = leaves.map((leaf) => {
      if (!(leaf instanceof NdArray)) return leaf;
      const array = backend.upload(leaf);
      if (!donated.has(leaf)) uploaded.push(array);
      return array;
    });
    try {
      return unflattenTree(entry.outputs, await entry.executable.run(inputs, options.communicators));
    } finally {
      for (const array of uploaded) backend.free(array);
    }
  };

  const release = (): void => {
    for (const { executable } of cache.values()) executable.release();
    cache.clear();
  };
  return Object.defineProperty(Object.assign(call, { release }), "cacheSize", { get: () => cache.size }) as unknown as CompiledFunction<Args, Result>;
};

/**
 * Run a function once on host arrays and bring the results back: the interactive door.
 *
 * @example const y = await evaluate((x: Tensor) => multiply(x, x), referenceBackend())(NdArray.from([1, 2, 3]));
 */
export const evaluate =
  <Args extends readonly unknown[], Result>(fn: (...args: Args) => Result, backend: Backend, options: JitOptions = {}) =>
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

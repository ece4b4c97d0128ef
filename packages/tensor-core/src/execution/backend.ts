import type { Communicators } from "../communicator.ts";
import type { DType } from "../dtype.ts";
import type { Graph } from "../graph/graph.ts";
import type { NdArray } from "../nd-array.ts";
import type { CollectiveOrder } from "../passes/collective-order.ts";
import type { Disposing } from "../platform-types.ts";
import type { Shape, TensorSpec } from "../shape.ts";
import type { SpanSink } from "../span-sink.ts";

/**
 * Array in the memory of a backend. Created by `upload` and `run`; owned by the caller until freed or donated.
 * `backend.free(array)` frees the memory immediately; `using array = …` frees it at the end of the block. The memory of
 * an unreachable array is freed after garbage collection.
 *
 * While a run reads the array, the caller may read the array and pass it to other runs, but not donate it. If the
 * caller frees the array during a run, the memory is released after the run. A donated array must not be used after it
 * is donated; if the run fails before it begins, the array is returned unchanged, and if the run fails later, the array
 * is lost.
 */
export interface DeviceArray extends TensorSpec, Disposing {
  readonly dtype: DType;
  readonly shape: Shape;
}

export interface CompileOptions {
  /**
   * Indices of donated inputs. The executable may write outputs into the memory of donated inputs, and frees the unused
   * memory.
   */
  readonly donate?: readonly number[];
  /**
   * Indices of the collectives in start order, see `scheduleCollectives`. Default: the canonical order, which is valid
   * if all ranks have this graph.
   */
  readonly collectiveOrder?: readonly number[];
  /** Sink that records a span per node. Recording has a small cost, so omit the sink unless profiling. */
  readonly spanSink?: SpanSink;
}

/** Compiled graph. */
export interface Executable {
  /** Size of the intermediate values in bytes. */
  readonly workspaceBytes: number;
  /** Collectives of the graph and their order. All ranks compare this value to agree on one order. */
  readonly collectives: CollectiveOrder;
  /**
   * Runs the graph. Donated inputs are consumed; the caller owns the outputs. If the run fails before it begins, all
   * inputs are unchanged. If the run fails later, donated inputs are lost.
   *
   * @throws ArrayStateError if an input is freed, donated or lost, if another run uses a donated input, while another
   * run of this executable is in progress, and after `release`.
   */
  run(inputs: readonly DeviceArray[], communicators?: Communicators): Promise<DeviceArray[]>;
  /** Releases the workspace: immediately, or after the current run. */
  release(): void;
}

/**
 * Device that runs graphs. `compile` throws `UnsupportedError`, which lists all unsupported operators and dtypes of the
 * graph.
 */
export interface Backend {
  readonly name: string;
  compile(graph: Graph, options?: CompileOptions): Executable;
  /**
   * Computes the size in bytes of the intermediate values of a graph, without compiling. Absent: the backend does not
   * plan memory.
   */
  workspaceBytes?(graph: Graph, options?: Pick<CompileOptions, "donate">): number;
  upload(array: NdArray): DeviceArray;
  download(array: DeviceArray): Promise<NdArray>;
  free(array: DeviceArray): void;
  /**
   * Triggers garbage collection, and frees the memory of unreachable arrays. `jit` calls this method when memory is
   * full. A program that only uploads arrays may need to call this method itself, because `upload` is synchronous and
   * cannot wait for garbage collection. Absent: arrays are in JavaScript memory.
   */
  reclaim?(): Promise<void>;
}

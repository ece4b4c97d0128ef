import type { Communicators } from "../communicator.ts";
import type { DType } from "../dtype.ts";
import type { Graph } from "../graph/graph.ts";
import type { NdArray } from "../nd-array.ts";
import type { CollectiveOrder } from "../passes/collective-order.ts";
import type { Disposing } from "../platform-types.ts";
import type { Shape, TensorSpec } from "../shape.ts";
import type { SpanSink } from "../span-sink.ts";

/**
 * A value in the memory of a backend. Created by `upload` and `run`; belongs to the caller until freed or donated.
 * `backend.free(array)` frees its memory at once, `using array = …` at the end of the block. The memory of a dropped
 * array is freed after the engine has collected the array.
 *
 * While a run reads the array, it may be read and passed to other runs, but not donated; if it is freed, its memory
 * stays until the run has ended. A donated array must not be used until the run has ended; if the run fails, the array
 * is lost.
 */
export interface DeviceArray extends TensorSpec, Disposing {
  readonly dtype: DType;
  readonly shape: Shape;
}

export interface CompileOptions {
  /** Indices of donated inputs: the executable may write outputs into their memory and frees the rest. */
  readonly donate?: readonly number[];
  /**
   * Order in which collectives start, see `scheduleCollectives`. Default: the order for ranks that all have this graph.
   */
  readonly collectiveOrder?: readonly number[];
  /** Records a span per node. Timing has a small cost; leave it out when not profiling. */
  readonly spanSink?: SpanSink;
}

/** A compiled graph. */
export interface Executable {
  /** Bytes of intermediates, known before the first run. */
  readonly workspaceBytes: number;
  /** Collectives of the graph, which all ranks compare to agree on one order. */
  readonly collectives: CollectiveOrder;
  /**
   * Run once. Donated inputs are consumed; outputs belong to the caller. A run that fails before it has begun leaves
   * its inputs unchanged; a later failure loses the donated inputs.
   *
   * @throws ArrayStateError for an input that has ended or is used by another run, while another run is in progress,
   * and after the release.
   */
  run(inputs: readonly DeviceArray[], communicators?: Communicators): Promise<DeviceArray[]>;
  /** Release the workspace, after the current run has ended. */
  release(): void;
}

/**
 * A device that runs graphs. `compile` throws `UnsupportedError` with every operator and dtype that the backend does
 * not support.
 */
export interface Backend {
  readonly name: string;
  compile(graph: Graph, options?: CompileOptions): Executable;
  /**
   * Bytes of intermediates that an executable of the graph would have, without compiling. Absent: the backend does not
   * plan memory.
   */
  workspaceBytes?(graph: Graph, options?: Pick<CompileOptions, "donate">): number;
  upload(array: NdArray): DeviceArray;
  download(array: DeviceArray): Promise<NdArray>;
  free(array: DeviceArray): void;
  /**
   * Make the engine collect dropped arrays, and free their memory. `jit` calls this method when memory runs short; a
   * loop that only uploads, which cannot wait, may call it itself. Absent: arrays have no memory outside the engine.
   */
  reclaim?(): Promise<void>;
}

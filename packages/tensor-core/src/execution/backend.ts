import type { Communicators } from "../communicator.ts";
import type { DType } from "../dtype.ts";
import type { Graph } from "../graph/graph.ts";
import type { NdArray } from "../nd-array.ts";
import type { CollectiveOrder } from "../passes/collective-order.ts";
import type { Disposing } from "../platform-types.ts";
import type { Shape, TensorSpec } from "../shape.ts";
import type { SpanSink } from "../span-sink.ts";

/**
 * A value that lives on a backend. Created by `upload` and `run`; belongs to the caller until freed or donated.
 * `backend.free(array)` frees its memory at once, `using array = …` at the end of the block. The memory of an array
 * that the program just drops is freed after the engine has collected the array.
 *
 * While a run reads it, it is lent: it may be read and passed on, not donated, and when it is freed its memory stays
 * until the run has ended. What was donated nobody else may touch until the run has ended; if that fails, the array is
 * lost.
 */
export interface DeviceArray extends TensorSpec, Disposing {
  readonly dtype: DType;
  readonly shape: Shape;
}

export interface CompileOptions {
  /** Indices of inputs that the caller gives away: the executable may write outputs into them and frees the rest. */
  readonly donate?: readonly number[];
  /**
   * The order in which collectives start, see `scheduleCollectives`. Default: that of ranks which all have this graph.
   */
  readonly collectiveOrder?: readonly number[];
  /** Records a span per node. Timing costs a little; leave it out when not profiling. */
  readonly spanSink?: SpanSink;
}

/** A compiled graph. */
export interface Executable {
  /** Bytes of intermediates, known before the first run. */
  readonly workspaceBytes: number;
  /** What other ranks have a part in, by which all agree on one order. */
  readonly collectives: CollectiveOrder;
  /**
   * Run once. Donated inputs are consumed; outputs belong to the caller. A run that fails before it has begun leaves
   * its inputs as they were; later failures lose those that were donated.
   *
   * @throws ArrayStateError for an input that has ended or is another run's, while a run is under way, and after the
   * release.
   */
  run(inputs: readonly DeviceArray[], communicators?: Communicators): Promise<DeviceArray[]>;
  /** Give back the workspace, once the run under way has ended. */
  release(): void;
}

/** A device that runs graphs. Throws `UnsupportedError` at `compile`, naming every operator and dtype that it lacks. */
export interface Backend {
  readonly name: string;
  compile(graph: Graph, options?: CompileOptions): Executable;
  /**
   * Bytes of intermediates that an executable of the graph would have, without making one. Absent where a backend plans
   * none.
   */
  workspaceBytes?(graph: Graph, options?: Pick<CompileOptions, "donate">): number;
  upload(array: NdArray): DeviceArray;
  download(array: DeviceArray): Promise<NdArray>;
  free(array: DeviceArray): void;
  /**
   * Make the engine collect arrays that the program has dropped, and free their memory. `jit` does so by itself when
   * memory runs short; a loop of `upload` alone, which cannot wait, may call it. Absent: arrays have no memory outside
   * the engine's own.
   */
  reclaim?(): Promise<void>;
}

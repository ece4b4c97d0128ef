import type { DType } from "./dtype.ts";

/** Operation of a collective. */
export type CollectiveKind =
  | "all-reduce"
  | "reduce-scatter"
  | "all-gather"
  | "all-to-all"
  | "broadcast"
  | "reduce"
  | "send-receive"
  | "barrier";

/** Reduction that a collective applies to the elements of all ranks. */
export type Reduction = "sum" | "max" | "min";

/**
 * One collective on bytes in memory. Regions of concurrent requests must not overlap. Input and output must not
 * overlap, except that all-reduce, broadcast and reduce may run in place, on the same region.
 *
 * | kind | `input` | `output` |
 * | --- | --- | --- |
 * | all-reduce | n elements | n elements; may be the same region (in place) |
 * | reduce-scatter | P·n elements | n elements: chunk `rank` of the reduction |
 * | all-gather | n elements | P·n elements, in rank order |
 * | all-to-all | P·n elements | P·n elements: chunk r is received from rank r |
 * | broadcast | n elements | n elements, equal to the input of rank `root` |
 * | reduce | n elements | n elements: the reduction on rank `root`, zeros on all others |
 * | send-receive | n elements for rank `to`, if given | n elements from rank `from`; zeros if absent |
 * | barrier | empty | empty |
 */
export interface CollectiveRequest {
  readonly kind: CollectiveKind;
  readonly dtype: DType;
  readonly input: Uint8Array;
  readonly output: Uint8Array;
  readonly reduction?: Reduction;
  readonly root?: number;
  readonly to?: number;
  readonly from?: number;
  /**
   * Row counts, for all-to-all and all-gather: only the first rows of each chunk are sent, and their number is known at
   * run time only. Absent: whole chunks.
   */
  readonly ragged?: RaggedRows;
  /**
   * Scheduling priority, 0 to 3. Requests of different priorities do not wait for each other. Must be equal on all
   * ranks. Default: 0.
   */
  readonly priority?: number;
  /**
   * Whether `wait` follows at once, so that no other thread is woken to run the request. If true and `wait` is not
   * called, the request may stay unprocessed.
   */
  readonly awaited?: boolean;
}

/**
 * Row counts of a ragged collective. `input` and `output` have their full length, in chunks of `capacity` rows. Rows of
 * a chunk beyond its count are not sent; the receiver fills them with zeros.
 */
export interface RaggedRows {
  /** Rows per chunk; equal on all ranks. */
  readonly capacity: number;
  /** Number of rows to send, i32: one per peer (all-to-all), or a single one (all-gather). */
  readonly rows: Uint8Array;
  /** Number of rows received from each rank, i32[P]; written by the collective. */
  readonly receivedRows: Uint8Array;
}

/** A collective in progress. Opaque; wait for it exactly once. */
export interface CollectiveHandle {
  readonly id: number;
}

/**
 * A group of ranks that run collectives together. Every rank starts the same requests of one priority in the same
 * order; a `send-receive` is started only by the ranks that send or receive. If ranks share several groups, one common
 * order applies to the requests of all groups (`canonicalOrder`). After a failed transfer the group is unusable, and
 * every later call throws.
 */
export interface Communicator {
  readonly rank: number;
  readonly worldSize: number;
  /** Start a collective; returns at once. Input and output belong to the communicator until `wait` returns. */
  start(request: CollectiveRequest): CollectiveHandle;
  /**
   * Block until the request is complete, or return a promise if the host cannot block. Throws if a peer is lost or on
   * timeout. After that, input and output may still be read and written, and their memory must not be reused.
   */
  wait(handle: CollectiveHandle): void | Promise<void>;
  /**
   * Name of the algorithm that carried out a request, for traces. Call right after `wait`; `undefined` if the name is
   * unknown or no longer known.
   */
  algorithmOf?(handle: CollectiveHandle): string | undefined;
  /** Payload bytes that this rank has sent to other ranks so far, without the texts of `exchangeTexts`. */
  bytesSent(): number;
  /** World ranks of this group, in the order of the group. */
  readonly members: readonly number[];
  /**
   * Send a text to all ranks of the world, not only of this group, and return the texts of all ranks, in rank order.
   * For facts that all ranks must agree on before they continue. Every rank of the world calls it at the same position
   * among its collectives. The transport of these texts does not depend on the choice of algorithms, so ranks can use
   * it to detect that they would choose differently.
   */
  exchangeTexts(text: string): readonly string[] | Promise<readonly string[]>;
  /**
   * The subgroup of the ranks that share a part of `partition` with this rank, in the order of that part. A collective
   * of this group: every rank of the group passes the same partition and name; if not, all ranks throw with the rank
   * that differs.
   *
   * @param partition ranks of this group, each in exactly one part.
   * @param name group name for errors: the mesh axis.
   */
  split(partition: readonly (readonly number[])[], name: string): Communicator;
}

/** Communicator of each mesh axis. */
export type Communicators = { readonly [axis: string]: Communicator };

import type { DType } from "./dtype.ts";

/** Kind of collective communication. */
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
 * Request for one collective. Input and output are bytes in memory. Memory regions of concurrent requests must not
 * overlap. Input and output must not overlap, except that all-reduce, broadcast and reduce may run in place, on the
 * same region.
 *
 * | kind | `input` | `output` |
 * | --- | --- | --- |
 * | all-reduce | n elements | n elements; may be the same region (in place) |
 * | reduce-scatter | P·n elements | n elements: chunk `rank` of the reduction |
 * | all-gather | n elements | P·n elements, in rank order |
 * | all-to-all | P·n elements | P·n elements: chunk r is received from rank r |
 * | broadcast | n elements | n elements, equal to the input of rank `root` |
 * | reduce | n elements | n elements: the reduction on rank `root`, zeros on all other ranks |
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
   * Row counts of a ragged all-to-all or all-gather, which sends only the first rows of each chunk. The counts are
   * known only at run time. Absent: whole chunks are sent.
   */
  readonly ragged?: RaggedRows;
  /**
   * Scheduling priority, 0 to 3. Requests of different priorities do not wait for each other. Must be equal on all
   * ranks. Default: 0.
   */
  readonly priority?: number;
  /**
   * Whether the caller calls `wait` immediately after `start`. If true, no other thread is woken to run the request,
   * and the request may never run if `wait` is not called.
   */
  readonly awaited?: boolean;
}

/**
 * Row counts of a ragged collective. `input` and `output` have full length: chunks of `capacity` rows. Rows of a chunk
 * beyond the count are not sent; the receiver fills these rows with zeros.
 */
export interface RaggedRows {
  /** Rows per chunk; equal on all ranks. */
  readonly capacity: number;
  /** Number of rows to send, i32. All-to-all: one number per peer. All-gather: a single number. */
  readonly rows: Uint8Array;
  /** Number of rows received from each rank, i32[P]; written by the collective. */
  readonly receivedRows: Uint8Array;
}

/** Handle of a collective in progress. Opaque; must be passed to `wait` exactly once. */
export interface CollectiveHandle {
  readonly id: number;
}

/**
 * A group of ranks that run collectives together. All ranks must start requests of equal priority in the same order;
 * only the ranks that send or receive start a `send-receive`. If ranks share several groups, the requests of all groups
 * must follow one common order (`canonicalOrder`). After a failed transfer the group is unusable, and every later call
 * throws.
 */
export interface Communicator {
  readonly rank: number;
  readonly worldSize: number;
  /** Starts a collective; returns immediately. Input and output belong to the communicator until `wait` returns. */
  start(request: CollectiveRequest): CollectiveHandle;
  /**
   * Blocks until the request is complete, or returns a promise if the host cannot block. Throws if a peer is lost or on
   * timeout. After a throw, the communicator may still read input and write output, so their memory must not be reused.
   */
  wait(handle: CollectiveHandle): void | Promise<void>;
  /**
   * Name of the algorithm that processed a request, for traces. Call directly after `wait`, because the communicator
   * may discard the name later. `undefined` if the name is unknown.
   */
  algorithmOf?(handle: CollectiveHandle): string | undefined;
  /** Number of payload bytes sent by this rank to other ranks so far, excluding `exchangeTexts`. */
  bytesSent(): number;
  /** World ranks of the members of this group, in group order. */
  readonly members: readonly number[];
  /**
   * Sends a text to all ranks of the world, not only of this group, and returns the texts of all ranks, in rank order.
   * For values that must be equal on all ranks before the ranks continue. Every rank of the world must call this method
   * at the same position in its sequence of collectives. The transport of the texts does not depend on the chosen
   * collective algorithms, so ranks can use the texts to detect that their choices differ.
   */
  exchangeTexts(text: string): readonly string[] | Promise<readonly string[]>;
  /**
   * Creates a communicator for the list in `partition` that contains this rank. The list is in group order. Collective
   * call: all ranks of this group must pass the same partition and name; otherwise all ranks throw, and the error names
   * the rank that differs.
   *
   * @param partition Disjoint lists of ranks of this group; each rank is in exactly one list.
   * @param name Group name for error messages: the mesh axis.
   */
  split(partition: readonly (readonly number[])[], name: string): Communicator;
}

/** Communicators by mesh axis. */
export type Communicators = { readonly [axis: string]: Communicator };

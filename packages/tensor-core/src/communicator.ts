import type { DType } from "./dtype.ts";

/** What a collective does. */
export type CollectiveKind =
  | "all-reduce"
  | "reduce-scatter"
  | "all-gather"
  | "all-to-all"
  | "broadcast"
  | "reduce"
  | "send-receive"
  | "barrier";

/** What a collective makes of the ranks' elements. */
export type Reduction = "sum" | "max" | "min";

/**
 * One collective, as bytes in memory. Regions of concurrent requests must not overlap; nor may input and output, except
 * that all-reduce, broadcast and reduce may work in place, on one and the same region.
 *
 * | kind | `input` | `output` |
 * | --- | --- | --- |
 * | all-reduce | n elements | n elements; may be the same region (in place) |
 * | reduce-scatter | P·n elements | n elements: chunk `rank` of the reduction |
 * | all-gather | n elements | P·n elements, in rank order |
 * | all-to-all | P·n elements | P·n elements: chunk r comes from rank r |
 * | broadcast | n elements | n elements, equal to rank `root`'s input |
 * | reduce | n elements | n elements: the reduction on rank `root`, zeros on all others |
 * | send-receive | n elements for rank `to`, if any | n elements from rank `from`; zeros without one |
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
  /** Of all-to-all and all-gather: only the first rows of each chunk travel, how many is known at run time. */
  readonly ragged?: RaggedRows;
  /**
   * Which requests go first, 0 to 3; those of different priorities do not wait for each other. Equal on all ranks.
   * Default: 0.
   */
  readonly priority?: number;
  /**
   * `wait` follows at once, so nobody else need be woken to carry the request out. A request that says so and is not
   * waited for may lie.
   */
  readonly awaited?: boolean;
}

/**
 * Rows of a ragged collective. `input` and `output` have the lengths of the table, in chunks of `capacity` rows; a
 * chunk's rows beyond its count stay at home, and are zero where they would arrive.
 */
export interface RaggedRows {
  /** Rows per chunk, the same on all ranks. */
  readonly capacity: number;
  /** i32, rows that travel: one for each peer (all-to-all), or one (all-gather). */
  readonly rows: Uint8Array;
  /** i32[P], rows that came from each rank; written. */
  readonly receivedRows: Uint8Array;
}

/** A collective under way. Opaque; wait for it exactly once. */
export interface CollectiveHandle {
  readonly id: number;
}

/**
 * A group of ranks that compute collectives together. Every rank starts the same requests of one priority in the same
 * order; a `send-receive` only those that send or receive. Where ranks share several groups, one order holds for the
 * requests of all (`canonicalOrder`). A failed transfer leaves the group unusable, and every later call says so.
 */
export interface Communicator {
  readonly rank: number;
  readonly worldSize: number;
  /** Begin; returns at once. Input and output belong to the communicator until `wait` returns. */
  start(request: CollectiveRequest): CollectiveHandle;
  /**
   * Block (or, where the host cannot block, return a promise) until the request is done. Throws on a lost peer or
   * timeout; then input and output may go on being read and written, and their memory must not be used again.
   */
  wait(handle: CollectiveHandle): void | Promise<void>;
  /**
   * How a request was carried out, for traces: the name of an algorithm. Asked at once after its `wait`; `undefined`
   * where that is no longer, or never was, known.
   */
  algorithmOf?(handle: CollectiveHandle): string | undefined;
  /** Payload bytes that this rank has sent to others so far, but for what ranks agree on by `exchangeTexts`. */
  bytesSent(): number;
  /** Ranks of the world that this group is made of, in its order. */
  readonly members: readonly number[];
  /**
   * Tell all ranks of the world, not of this group alone, a text, and hear theirs, in the order of ranks: for what they
   * must agree on before they go on. Every rank of the world calls it at the same place among its collectives. It takes
   * the same way whatever algorithms are chosen by, so ranks may find out by it that they would choose differently.
   */
  exchangeTexts(text: string): readonly string[] | Promise<readonly string[]>;
  /**
   * The group of those ranks of this one that share a part of `partition` with this rank, in the order of that part. A
   * collective of this group: every rank of it passes the same partition and name, or all are told who does not.
   *
   * @param partition ranks of this group, each in one part.
   * @param name of the group, for errors: the mesh axis.
   */
  split(partition: readonly (readonly number[])[], name: string): Communicator;
}

/** The communicator of each mesh axis. */
export type Communicators = { readonly [axis: string]: Communicator };

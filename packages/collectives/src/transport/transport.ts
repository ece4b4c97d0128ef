import type { DType } from "@skein/tensor-core";

/**
 * What another thread will bring about. Whoever executes a schedule asks `ready` again whenever a message comes, does
 * other work meanwhile, and calls `expire`, which throws, when it has waited too long.
 */
export class Future<T> {
  readonly ready: () => boolean;
  readonly take: () => T;
  readonly expire: () => never;

  constructor(ready: () => boolean, take: () => T, expire: () => never) {
    this.ready = ready;
    this.take = take;
    this.expire = expire;
  }
}

/** A value now, or later: from another thread of this process, or from a network. */
export type Eventually<T> = T | Promise<T> | Future<T>;

/** Whether a value is still to come. */
export const isLater = <T>(value: Eventually<T>): value is Promise<T> | Future<T> =>
  value instanceof Future || value instanceof Promise;

/** What `call` makes of a value, once it is there. */
export const after = <T, U>(value: Eventually<T>, call: (value: T) => U): Eventually<U> => {
  if (value instanceof Future) return new Future(value.ready, () => call(value.take()), value.expire);
  return value instanceof Promise ? value.then(call) : call(value);
};

/**
 * Moves bytes between two ranks, in order for each pair; knows no tensors. Bytes are lent, not given: a transport over
 * shared memory then needs no copy at all, one over a network is done with a send once the bytes are handed to the
 * system.
 *
 * One transport serves one request at a time: each lane of a world has its own.
 */
export interface Transport {
  readonly rank: number;
  readonly worldSize: number;
  /** Whether `receive` hands out the memory of `peer` itself, which may be written until it is released. */
  sharesMemoryWith(peer: number): boolean;
  /** Say what the elements of the request that begins are, for transports that code them on the way. */
  describe?(dtype: DType): void;
  /**
   * Lend `bytes` to `peer`. They must not change before `whenSent`. Both sides give the same `tag`, or the receiver
   * throws.
   */
  send(peer: number, tag: number, bytes: Uint8Array): Eventually<SendHandle>;
  /**
   * Borrow the next message from `peer`. Throws when its tag or length is another, or when it does not come in time.
   */
  receive(peer: number, tag: number, byteLength: number): Eventually<Uint8Array>;
  /**
   * Let the next message from `peer` land in `target`, which nobody else uses meanwhile; nothing is to be released.
   * Absent where `receive` costs no more.
   */
  receiveInto?(peer: number, tag: number, target: Uint8Array): Eventually<void>;
  /** Give back the oldest message borrowed from `peer`. */
  release(peer: number): void;
  /** Wait until a send is done: `peer` has released its bytes, or a network has them. They may change again. */
  whenSent(handle: SendHandle): Eventually<void>;
}

/** A message in flight: the `count`-th to `peer`. */
export interface SendHandle {
  readonly peer: number;
  readonly count: number;
}

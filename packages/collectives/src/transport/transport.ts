import type { DType } from "@skein/tensor-core";

/**
 * A value provided by another thread. The executor of a schedule calls `ready` again after each message, does other
 * work between the calls, and calls `expire`, which throws, after the timeout.
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

/** A value that is available now or later, from another thread of this process or from a network. */
export type Eventually<T> = T | Promise<T> | Future<T>;

/** Whether a value is not available yet. */
export const isLater = <T>(value: Eventually<T>): value is Promise<T> | Future<T> =>
  value instanceof Future || value instanceof Promise;

/** Applies `call` to a value when it is available. */
export const after = <T, U>(value: Eventually<T>, call: (value: T) => U): Eventually<U> => {
  if (value instanceof Future) return new Future(value.ready, () => call(value.take()), value.expire);
  return value instanceof Promise ? value.then(call) : call(value);
};

/**
 * Sends bytes between two ranks, in order for each pair, without knowledge of tensors. Bytes are borrowed, not copied:
 * a transport over shared memory needs no copy, and a send over a network is complete when the system has accepted the
 * bytes.
 *
 * A transport serves one request at a time; each lane of a world has a separate transport.
 */
export interface Transport {
  readonly rank: number;
  readonly worldSize: number;
  /** Whether `receive` returns the memory of `peer` itself, which may be written until it is released. */
  sharesMemoryWith(peer: number): boolean;
  /** Announces the dtype of the next request, for transports that compress data. */
  describe?(dtype: DType): void;
  /**
   * Sends `bytes` to `peer`. The bytes must not change before `whenSent`. Sender and receiver must pass the same `tag`;
   * otherwise the receiver throws.
   */
  send(peer: number, tag: number, bytes: Uint8Array): Eventually<SendHandle>;
  /**
   * Borrows the next message from `peer`. Throws if the message has a different tag or length, or does not arrive
   * within the timeout.
   */
  receive(peer: number, tag: number, byteLength: number): Eventually<Uint8Array>;
  /**
   * Receives the next message from `peer` into `target`, which must not be used until the message has arrived. No
   * memory has to be released. Absent: this transport has no faster way than `receive` and a copy.
   */
  receiveInto?(peer: number, tag: number, target: Uint8Array): Eventually<void>;
  /** Releases the oldest message borrowed from `peer`. */
  release(peer: number): void;
  /**
   * Waits until a send is complete: `peer` has released the bytes, or the network has accepted them. The bytes may then
   * change.
   */
  whenSent(handle: SendHandle): Eventually<void>;
}

/** A message in flight. `count` is the sequence number of the message among all messages to `peer`. */
export interface SendHandle {
  readonly peer: number;
  readonly count: number;
}

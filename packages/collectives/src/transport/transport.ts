import type { DType } from "@skein/tensor-core";

/**
 * What another thread will bring about. Whoever carries a schedule out asks `ready` again whenever mail comes, does other work
 * meanwhile, and calls `expire`, which throws, when it has waited too long.
 */
export class Later<T> {
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
export type Eventually<T> = T | Promise<T> | Later<T>;

/**
 * Moves bytes between two ranks, in order for each pair; knows no tensors. Bytes are lent, not given: a transport over shared
 * memory then needs no copy at all, one over a network returns the loan once the bytes are handed to the system.
 *
 * One transport carries one request at a time: each lane of a world has its own.
 */
export interface Transport {
  readonly rank: number;
  readonly worldSize: number;
  /** Whether `receive` hands out the memory of `peer` itself, which may be written until it is released. */
  sharesMemoryWith(peer: number): boolean;
  /** Say what the elements of the request that begins are, for transports that code them on the way. */
  describe?(dtype: DType): void;
  /** Lend `bytes` to `peer`. They must not change before `whenReturned`. Both sides give the same `tag`, or the receiver throws. */
  send(peer: number, tag: number, bytes: Uint8Array): Eventually<Loan>;
  /** Borrow the next message from `peer`. Throws when its tag or length is another, or when it does not come in time. */
  receive(peer: number, tag: number, byteLength: number): Eventually<Uint8Array>;
  /**
   * Let the next message from `peer` land in `target`, which nobody else uses meanwhile; nothing is to be released. Absent where
   * `receive` costs no more.
   */
  receiveInto?(peer: number, tag: number, target: Uint8Array): Eventually<void>;
  /** Give back the oldest message borrowed from `peer`. */
  release(peer: number): void;
  /** Wait until `peer` has released the loan. */
  whenReturned(loan: Loan): Eventually<void>;
}

/** A message on its way: the `count`-th to `peer`. */
export interface Loan {
  readonly peer: number;
  readonly count: number;
}

/** A value now, or later where the transport cannot block. */
export type Eventually<T> = T | Promise<T>;

/**
 * Moves bytes between two ranks, in order for each pair; knows no tensors. Bytes are lent, not given: a transport over shared
 * memory then needs no copy at all, one over a network copies into its own buffers and returns the loan at once.
 */
export interface Transport {
  readonly rank: number;
  readonly worldSize: number;
  /** Whether `receive` hands out the sender's own memory, which may be written until it is released. */
  readonly sharesMemory: boolean;
  /** Lend `bytes` to `peer`. They must not change before `whenReturned`. Both sides give the same `tag`, or the receiver throws. */
  send(peer: number, tag: number, bytes: Uint8Array): Eventually<Loan>;
  /** Borrow the next message from `peer`. Throws when its tag or length is another, or when it does not come in time. */
  receive(peer: number, tag: number, byteLength: number): Eventually<Uint8Array>;
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

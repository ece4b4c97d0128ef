import type { DType } from "@skein/tensor-core";
import type { CollectiveError } from "../errors.ts";
import type { ReceiveQueue } from "./receive-queue.ts";
import type { SendQueue } from "./send-queue.ts";

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: CollectiveError) => void;
}

/** What a rank has with one peer on one lane: its messages there and back, and who waits for them. */
export class Route {
  readonly peer: number;
  readonly lane: number;
  readonly incoming: ReceiveQueue;
  /** Messages that the transport has handed out and not got back. */
  readonly borrowed: Uint8Array[] = [];
  /** Of the last message that was asked for or sent. */
  tag = 0;
  /**
   * When the peer was last seen to take part: a frame from it, bytes that left for it, or the beginning of the wait.
   */
  progress = 0;
  #sent = 0;
  #done = 0;
  #receiving: Waiter | undefined;
  #waitingForSends: (Waiter & { readonly count: number }) | undefined;

  constructor(peer: number, lane: number, makeQueue: (complete: () => void) => ReceiveQueue) {
    this.peer = peer;
    this.lane = lane;
    this.incoming = makeQueue(() => {
      const receiving = this.#receiving;
      this.#receiving = undefined;
      receiving?.resolve();
    });
  }

  /** Whether somebody waits here. */
  get waits(): boolean {
    return this.#receiving !== undefined || this.#waitingForSends !== undefined;
  }

  /** @returns the number of the send. */
  send(queue: SendQueue, bytes: Uint8Array, now: () => number, dtype?: DType): number {
    this.#sent += 1;
    const settled = (): void => {
      this.#done += 1;
      this.progress = now();
      const waiter = this.#waitingForSends;
      if (waiter === undefined || this.#done < waiter.count) return;
      this.#waitingForSends = undefined;
      waiter.resolve();
    };
    queue.push(this.lane, this.tag, bytes, settled, dtype);
    return this.#sent;
  }

  /** Let the next message land in `target`. `waiting` is told when that takes time. */
  receive(target: Uint8Array, waiting: () => void): void | Promise<void> {
    if (this.incoming.post(this.tag, target)) return;
    return new Promise((resolve, reject) => {
      this.#receiving = { resolve, reject };
      waiting();
    });
  }

  isSent(count: number): boolean {
    return this.#done >= count;
  }

  whenSent(count: number, waiting: () => void): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waitingForSends = { resolve, reject, count };
      waiting();
    });
  }

  /** End the waits. */
  reject(error: () => CollectiveError): void {
    const waiters = [this.#receiving, this.#waitingForSends];
    this.#receiving = undefined;
    this.#waitingForSends = undefined;
    for (const waiter of waiters) waiter?.reject(error());
  }
}

import type { DType } from "@skein/tensor-core";
import type { CollectiveError } from "../errors.ts";
import type { ReceiveQueue } from "./receive-queue.ts";
import type { SendQueue } from "./send-queue.ts";

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: CollectiveError) => void;
}

/** Messages between a rank and one peer on one lane in both directions, and the pending waits for these messages. */
export class Route {
  readonly peer: number;
  readonly lane: number;
  readonly incoming: ReceiveQueue;
  /** Messages that the transport has returned from `receive` and that were not released yet. */
  readonly borrowed: Uint8Array[] = [];
  /** Tag of the last requested or sent message. */
  tag = 0;
  /**
   * Time at which the peer last made progress: a frame was received from the peer, bytes were sent to the peer, or the
   * wait began.
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

  /** Whether a thread waits on this route. */
  get waits(): boolean {
    return this.#receiving !== undefined || this.#waitingForSends !== undefined;
  }

  /**
   * Queues a message.
   *
   * @returns sequence number of the message on the route.
   */
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

  /** Receives the next message into `target`. Calls `waiting` if the message has not arrived yet. */
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

  /** Rejects all pending waits. */
  reject(error: () => CollectiveError): void {
    const waiters = [this.#receiving, this.#waitingForSends];
    this.#receiving = undefined;
    this.#waitingForSends = undefined;
    for (const waiter of waiters) waiter?.reject(error());
  }
}

import { InvariantError } from "@skein/tensor-core";
import { type Control, mailAt, mailWord, slotCount } from "../threads/control.ts";
import type { Loan, Transport } from "./transport.ts";

/**
 * Messages between threads of one process whose buffers lie in one shared memory: what travels is an address and a length. Blocks.
 * Counters and slots live in the control block, so any thread of a rank may carry out the next request.
 */
export class ThreadTransport implements Transport {
  readonly rank: number;
  readonly worldSize: number;
  readonly sharesMemory = true;
  private readonly control: Control;
  private readonly memory: WebAssembly.Memory;
  /** Messages of each peer that this thread has borrowed and not released; all zero between requests. */
  private readonly borrowed: Int32Array;

  constructor(control: Control, memory: WebAssembly.Memory) {
    this.rank = control.rank;
    this.worldSize = control.worldSize;
    this.control = control;
    this.memory = memory;
    this.borrowed = new Int32Array(control.worldSize);
  }

  send(peer: number, tag: number, bytes: Uint8Array): Loan {
    const { words } = this.control;
    const mail = mailAt(this.worldSize, this.rank, peer);
    const sent = Atomics.load(words, mail + mailWord.sent);
    for (;;) {
      const returned = Atomics.load(words, mail + mailWord.returned);
      if (((sent - returned) | 0) < slotCount) break;
      this.wait(mail + mailWord.returned, returned, peer, tag);
    }
    const slot = mail + mailWord.slots + (sent & (slotCount - 1)) * 3;
    words[slot] = bytes.byteOffset;
    words[slot + 1] = bytes.byteLength;
    words[slot + 2] = tag;
    Atomics.store(words, mail + mailWord.sent, (sent + 1) | 0); // publishes the slot, and all that was written to `bytes` before
    Atomics.notify(words, mail + mailWord.sent);
    return { peer, count: (sent + 1) | 0 };
  }

  receive(peer: number, tag: number, byteLength: number): Uint8Array {
    const { words } = this.control;
    const mail = mailAt(this.worldSize, peer, this.rank);
    const taken = (Atomics.load(words, mail + mailWord.returned) + this.borrowed[peer]!) | 0;
    while (Atomics.load(words, mail + mailWord.sent) === taken) this.wait(mail + mailWord.sent, taken, peer, tag);
    const slot = mail + mailWord.slots + (taken & (slotCount - 1)) * 3;
    const sentBytes = words[slot + 1]! >>> 0;
    if (sentBytes !== byteLength || words[slot + 2] !== tag) {
      this.control.fail("disagree", peer, tag, sentBytes, words[slot + 2]!);
      throw this.control.failure()!;
    }
    this.borrowed[peer]! += 1;
    return new Uint8Array(this.memory.buffer, words[slot]! >>> 0, byteLength);
  }

  release(peer: number): void {
    if (this.borrowed[peer] === 0) throw new InvariantError(`rank ${this.rank} released a message of rank ${peer} that it did not hold`);
    this.borrowed[peer]! -= 1;
    const { words } = this.control;
    const returned = mailAt(this.worldSize, peer, this.rank) + mailWord.returned;
    Atomics.add(words, returned, 1);
    Atomics.notify(words, returned);
  }

  whenReturned({ peer, count }: Loan): void {
    const returned = mailAt(this.worldSize, this.rank, peer) + mailWord.returned;
    for (;;) {
      const seen = Atomics.load(this.control.words, returned);
      if (((seen - count) | 0) >= 0) return;
      this.wait(returned, seen, peer, this.tagOfLoan(peer, count));
    }
  }

  private tagOfLoan(peer: number, count: number): number {
    const mail = mailAt(this.worldSize, this.rank, peer);
    return this.control.words[mail + mailWord.slots + ((count - 1) & (slotCount - 1)) * 3 + 2]!;
  }

  private wait(index: number, seen: number, peer: number, tag: number): void {
    if (this.control.spinForChange(index, seen)) return;
    if (!this.control.waitForChange(index, seen)) this.control.fail("timeout", peer, tag, this.control.timeoutMilliseconds);
    this.control.throwIfUnusable(tag);
  }
}

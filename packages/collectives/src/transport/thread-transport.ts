import { InvariantError } from "@skein/tensor-core";
import type { WasmMemory } from "@skein/tensor-core/backend";
import type { ControlBlock } from "../control-block/control-block.ts";
import { channelWord, slotCount } from "../control-block/layout.ts";
import { type Eventually, Future, type SendHandle, type Transport } from "./transport.ts";

/**
 * Passes the messages of one lane between threads of one process, whose operands are in one shared memory. A message is
 * an address and a length. Counters and slots are in the control block, so any thread of a rank may execute the next
 * request.
 */
export class ThreadTransport implements Transport {
  readonly rank: number;
  readonly worldSize: number;
  private readonly control: ControlBlock;
  private readonly memory: WasmMemory;
  private readonly lane: number;
  /**
   * Number of messages per peer that this thread has borrowed and not released. All values are zero between requests.
   */
  private readonly borrowed: Int32Array;

  constructor(control: ControlBlock, memory: WasmMemory, lane = 0) {
    this.rank = control.rank;
    this.worldSize = control.worldSize;
    this.control = control;
    this.memory = memory;
    this.lane = lane;
    this.borrowed = new Int32Array(control.worldSize);
  }

  sharesMemoryWith(): boolean {
    return true;
  }

  send(peer: number, tag: number, bytes: Uint8Array): Eventually<SendHandle> {
    const { words } = this.control;
    const channel = this.control.channelAt(this.lane, this.rank, peer);
    const sent = Atomics.load(words, channel + channelWord.sent);
    const hasRoom = (): boolean => ((sent - Atomics.load(words, channel + channelWord.returned)) | 0) < slotCount;
    if (hasRoom()) return this.put(peer, channel, sent, tag, bytes);
    return new Future(
      hasRoom,
      () => this.put(peer, channel, sent, tag, bytes),
      () => this.expire(peer, tag),
    );
  }

  private put(peer: number, channel: number, sent: number, tag: number, bytes: Uint8Array): SendHandle {
    const { words } = this.control;
    const slot = channel + channelWord.slots + (sent & (slotCount - 1)) * 3;
    words[slot] = bytes.byteOffset;
    words[slot + 1] = bytes.byteLength;
    words[slot + 2] = tag;
    Atomics.store(words, channel + channelWord.sent, (sent + 1) | 0); // Publishes the slot, and everything that was written to `bytes` before.
    this.control.notify(peer, "message");
    return { peer, count: (sent + 1) | 0 };
  }

  receive(peer: number, tag: number, byteLength: number): Eventually<Uint8Array> {
    const { words } = this.control;
    const channel = this.control.channelAt(this.lane, peer, this.rank);
    const taken = (Atomics.load(words, channel + channelWord.returned) + this.borrowed[peer]!) | 0;
    const hasArrived = (): boolean => Atomics.load(words, channel + channelWord.sent) !== taken;
    if (hasArrived()) return this.take(peer, channel, taken, tag, byteLength);
    return new Future(
      () => hasArrived() || this.control.isAheadOf(this.lane, peer),
      () => {
        // The peer sends all messages of this request before it joins an exchange.
        if (!hasArrived()) this.disagree(peer, tag, byteLength, "has begun another collective");
        return this.take(peer, channel, taken, tag, byteLength);
      },
      () => this.expire(peer, tag),
    );
  }

  private take(peer: number, channel: number, taken: number, tag: number, byteLength: number): Uint8Array {
    const { words } = this.control;
    const slot = channel + channelWord.slots + (taken & (slotCount - 1)) * 3;
    const [address, sentBytes, sentTag] = [words[slot]! >>> 0, words[slot + 1]! >>> 0, words[slot + 2]!];
    if (sentBytes !== byteLength || sentTag !== tag)
      this.disagree(peer, tag, byteLength, `sent ${sentBytes} bytes for ${this.control.nameOf(sentTag)}`);
    this.borrowed[peer]! += 1;
    // A thread may still see the old buffer after another thread grew the memory.
    if (this.memory.buffer.byteLength < address + byteLength) this.memory.grow(0);
    return new Uint8Array(this.memory.buffer, address, byteLength);
  }

  release(peer: number): void {
    if (this.borrowed[peer] === 0)
      throw new InvariantError(`rank ${this.rank} released a message of rank ${peer} that it did not hold`);
    this.borrowed[peer]! -= 1;
    Atomics.add(this.control.words, this.control.channelAt(this.lane, peer, this.rank) + channelWord.returned, 1);
    this.control.notify(peer, "message");
  }

  whenSent({ peer, count }: SendHandle): Eventually<void> {
    const { words } = this.control;
    const channel = this.control.channelAt(this.lane, this.rank, peer);
    const isBack = (): boolean => ((Atomics.load(words, channel + channelWord.returned) - count) | 0) >= 0;
    if (isBack()) return undefined;
    const tag = words[channel + channelWord.slots + ((count - 1) & (slotCount - 1)) * 3 + 2]!;
    return new Future<void>(
      isBack,
      () => undefined,
      () => this.expire(peer, tag),
    );
  }

  private disagree(peer: number, tag: number, byteLength: number, difference: string): never {
    const expected = `${byteLength} bytes for ${this.control.nameOf(tag)}`;
    this.control.failDisagree(peer, tag, `rank ${peer} ${difference}, but rank ${this.rank} expected ${expected}`);
    throw this.control.failure(tag)!;
  }

  private expire(peer: number, tag: number): never {
    this.control.failTimeout(peer, tag);
    throw this.control.failure(tag)!;
  }
}

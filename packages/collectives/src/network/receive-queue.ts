import { InvariantError } from "@skein/tensor-core";
import type { MessageMemory } from "../message-memory.ts";
import { WireError } from "../wire/errors.ts";
import { type FrameHeader, frameFlags } from "../wire/frame.ts";
import { type Flow, frameCharge, frameCount, messageCharge } from "./flow.ts";
import type { LinkCodec } from "./link.ts";

/** A requested message that is not complete yet. */
interface Posted {
  readonly tag: number;
  readonly target: Uint8Array;
  readonly frames: number;
  /** One byte per frame: 1 if its payload has begun to arrive, otherwise 0. */
  readonly claimed: Uint8Array;
  arrived: number;
}

/** A frame that arrived before its message was requested, or that is not decoded yet. */
interface EarlyFrame {
  readonly header: FrameHeader;
  readonly payload: Uint8Array;
  whole: boolean;
}

export interface ReceiveQueueOptions extends Flow {
  readonly memory: MessageMemory;
  readonly codec?: LinkCodec | undefined;
  /** Grants the sender credit for `bytes` more bytes. */
  readonly grant: (bytes: number) => void;
  /** Called when the requested message is complete. */
  readonly complete: () => void;
  /** Called if the tag or size of a received message differs from the requested tag or size. Must throw. */
  readonly disagree: (difference: string, tag: number) => never;
}

const empty = new Uint8Array(0);

/**
 * Receives the messages of one peer on one lane, in order. A frame is received directly into the target of its message,
 * without a copy. A frame that arrives before its message was requested is stored in message memory, at most
 * `earlyBytes` in total, which is the sender's initial credit.
 *
 * A requested message may be larger than the credit; the request then grants the missing credit.
 */
export class ReceiveQueue {
  readonly #options: ReceiveQueueOptions;
  readonly #early = new Map<number, EarlyFrame>();
  #earlyCharge = 0;
  #first = 0; // Sequence number of the first frame of the next message.
  #posted: Posted | undefined;
  #ungranted = 0; // Earned credit that has not been granted yet.

  constructor(options: ReceiveQueueOptions) {
    this.#options = options;
  }

  /**
   * Requests the next message.
   *
   * @returns whether the message is already complete; otherwise `complete` is called later.
   */
  post(tag: number, target: Uint8Array): boolean {
    if (this.#posted !== undefined)
      throw new InvariantError(`a message was requested while one with tag ${this.#posted.tag} is in flight`);
    const frames = frameCount(target.byteLength, this.#options);
    const posted = { tag, target, frames, claimed: new Uint8Array(frames), arrived: 0 };
    this.#posted = posted;
    for (let index = 0; index < frames && this.#early.size > 0; index++) {
      const sequence = (this.#first + index) >>> 0;
      const early = this.#early.get(sequence);
      if (early === undefined) continue;
      this.#check(posted, index, early.header);
      posted.claimed[index] = 1;
      this.#earlyCharge -= this.#chargeOf(early.header);
      if (early.whole) this.#absorb(posted, index, sequence, early);
    }
    this.#earn(messageCharge(target.byteLength, this.#options));
    return this.#finish(posted);
  }

  /**
   * Returns the next message without a copy, if the message has arrived completely in one uncoded frame; otherwise
   * returns undefined. The caller must free the returned memory.
   */
  takeEarly(tag: number, byteLength: number): Uint8Array | undefined {
    const early = this.#early.get(this.#first);
    if (byteLength === 0 || early?.whole !== true || this.#posted !== undefined) return undefined;
    const { header, payload } = early;
    if ((header.flags & frameFlags.coded) !== 0 || byteLength > this.#options.frameBytes) return undefined;
    this.#check({ tag, target: { byteLength }, frames: 1 }, 0, header);
    this.#early.delete(this.#first);
    this.#earlyCharge -= this.#chargeOf(header);
    this.#first = (this.#first + 1) >>> 0;
    this.#earn(frameCharge(byteLength));
    return payload;
  }

  /** Tag of the next message if its first frame arrived before the message was requested, otherwise undefined. */
  get earlyTag(): number | undefined {
    return this.#posted === undefined ? this.#early.get(this.#first)?.header.tag : undefined;
  }

  /** Returns the memory for the payload of a frame. */
  target(header: FrameHeader): Uint8Array {
    const { memory } = this.#options;
    const posted = this.#posted;
    const index = (header.sequence - this.#first) >>> 0;
    if (posted === undefined || index >= posted.frames) {
      this.#earlyCharge += this.#chargeOf(header);
      if (this.#earlyCharge > this.#options.earlyBytes)
        throw new WireError(
          "frame-length",
          `a peer sent ${this.#earlyCharge} unrequested bytes, ${this.#options.earlyBytes} are allowed; it exceeds the credit that it was granted`,
        );
      return this.#storeEarly(header, memory.take(header.length));
    }
    this.#check(posted, index, header);
    if (posted.claimed[index] === 1) this.#throwDuplicate(header);
    posted.claimed[index] = 1;
    if ((header.flags & frameFlags.coded) !== 0) return this.#storeEarly(header, memory.take(header.length));
    const begin = index * this.#options.frameBytes;
    return posted.target.subarray(begin, begin + header.length);
  }

  /** Records that a frame was received completely. */
  frame(header: FrameHeader): void {
    if (header.length === 0) this.#receiveEmpty(header);
    const posted = this.#posted;
    const index = (header.sequence - this.#first) >>> 0;
    const early = this.#early.get(header.sequence);
    if (early !== undefined) {
      early.whole = true;
      if (posted === undefined || index >= posted.frames) return;
      this.#absorb(posted, index, header.sequence, early);
    } else if (posted !== undefined) posted.arrived += 1;
    if (posted !== undefined && this.#finish(posted)) this.#options.complete();
  }

  /** Discards a frame whose payload was interrupted, because the frame will be sent again. */
  forget(header: FrameHeader): void {
    const posted = this.#posted;
    const index = (header.sequence - this.#first) >>> 0;
    const claimed = posted !== undefined && index < posted.frames;
    if (claimed) posted.claimed[index] = 0;
    const early = this.#early.get(header.sequence);
    if (early === undefined) return;
    this.#early.delete(header.sequence);
    this.#options.memory.give(early.payload);
    if (!claimed) this.#earlyCharge -= this.#chargeOf(header);
  }

  /** Records the receipt of an empty frame, for which no target memory is requested. */
  #receiveEmpty(header: FrameHeader): void {
    const posted = this.#posted;
    const index = (header.sequence - this.#first) >>> 0;
    if (posted !== undefined && index < posted.frames) {
      this.#check(posted, index, header);
      if (posted.claimed[index] === 1) this.#throwDuplicate(header);
      posted.claimed[index] = 1;
    } else {
      this.#earlyCharge += frameCharge(0);
      if (this.#earlyCharge > this.#options.earlyBytes)
        throw new WireError(
          "frame-length",
          `a peer sent ${this.#early.size + 1} unrequested empty messages; it exceeds the credit that it was granted`,
        );
      this.#storeEarly(header, empty);
    }
  }

  #storeEarly(header: FrameHeader, payload: Uint8Array): Uint8Array {
    if (this.#early.has(header.sequence)) this.#throwDuplicate(header);
    this.#early.set(header.sequence, { header, payload, whole: false });
    return payload;
  }

  #absorb(posted: Posted, index: number, sequence: number, { header, payload }: EarlyFrame): void {
    const { frameBytes, codec, memory } = this.#options;
    const place = posted.target.subarray(index * frameBytes, (index + 1) * frameBytes);
    if ((header.flags & frameFlags.coded) === 0) place.set(payload);
    else codec!.decode(payload, place); // #check has verified that there is a codec.
    this.#early.delete(sequence);
    if (payload.byteLength > 0) memory.give(payload);
    posted.arrived += 1;
  }

  #finish(posted: Posted): boolean {
    if (posted.arrived < posted.frames) return false;
    this.#first = (this.#first + posted.frames) >>> 0;
    this.#posted = undefined;
    return true;
  }

  // Returns the credit charged for a frame. A coded frame is charged for its coded size, because the receiver does not
  // know the decoded size before decoding.
  #chargeOf(header: FrameHeader): number {
    return frameCharge(header.length);
  }

  // Records credit that the sender has earned. The credit is granted when it reaches half of the initial credit, so
  // that one grant covers many small messages. The sender always has the other half of the initial credit.
  #earn(charge: number): void {
    this.#ungranted += charge;
    if (this.#ungranted < this.#options.earlyBytes / 2) return;
    this.#options.grant(this.#ungranted);
    this.#ungranted = 0;
  }

  #check(
    posted: { tag: number; target: { byteLength: number }; frames: number },
    index: number,
    header: FrameHeader,
  ): void {
    const { frameBytes, codec, disagree } = this.#options;
    const { byteLength } = posted.target;
    if (header.tag !== posted.tag)
      disagree(
        `a message of collective ${header.tag} came where one of collective ${posted.tag} was expected`,
        posted.tag,
      );
    const expected = Math.min(frameBytes, byteLength - index * frameBytes);
    const coded = (header.flags & frameFlags.coded) !== 0;
    const last = (header.flags & frameFlags.last) !== 0;
    const isLast = index === posted.frames - 1;
    if (last && !isLast)
      disagree(
        `a message ended after ${index * frameBytes + (coded ? 0 : header.length)} bytes, ${byteLength} were expected`,
        posted.tag,
      );
    if (!last && isLast) disagree(`a message has more than the expected ${byteLength} bytes`, posted.tag);
    if (coded ? header.length >= expected : header.length !== expected)
      disagree(`a message has ${index * frameBytes + header.length} bytes, ${byteLength} were expected`, posted.tag);
    if (coded && codec === undefined)
      throw new WireError(
        "frame-header",
        "a coded frame came to a rank without a codec; give all ranks of a job the same settings",
      );
  }

  #throwDuplicate(header: FrameHeader): never {
    throw new WireError(
      "frame-sequence",
      `frame ${header.sequence} of lane ${header.stream} came twice; the connection repeats frames, so the link cannot be trusted`,
    );
  }
}

import { InvariantError } from "@skein/tensor-core";
import type { MessageMemory } from "../message-memory.ts";
import { WireError } from "../wire/errors.ts";
import { type FrameHeader, frameFlags } from "../wire/frame.ts";
import { type Flow, frameCharge, frameCount, messageCharge } from "./flow.ts";
import type { LinkCodec } from "./link.ts";

/** The message that a rank waits for. */
interface Posted {
  readonly tag: number;
  readonly target: Uint8Array;
  readonly frames: number;
  /** Which frames have begun to land. */
  readonly claimed: Uint8Array;
  arrived: number;
}

/** A frame that came before its message was asked for, or whose coded form is not yet decoded. */
interface Kept {
  readonly header: FrameHeader;
  readonly payload: Uint8Array;
  whole: boolean;
}

export interface ReceiveQueueOptions extends Flow {
  readonly memory: MessageMemory;
  readonly codec?: LinkCodec | undefined;
  /** Let the sender send `bytes` more. */
  readonly grant: (bytes: number) => void;
  /** The posted message is whole. */
  readonly complete: () => void;
  /** What came is not what was posted; must throw. */
  readonly disagree: (difference: string, tag: number) => never;
}

const empty = new Uint8Array(0);

/**
 * What one peer sends on one lane, in order. A frame lands where its message is wanted, without a copy; one that comes
 * before its message was asked for is kept in message memory, at most `earlyBytes` in all: more the sender has no
 * credit for.
 *
 * A message may be asked for that is larger than the credit: asking grants what is missing.
 */
export class ReceiveQueue {
  readonly #options: ReceiveQueueOptions;
  readonly #kept = new Map<number, Kept>();
  #keptCharge = 0;
  #first = 0; // sequence of the first frame of the next message
  #posted: Posted | undefined;
  #owed = 0; // credit earned and not told yet

  constructor(options: ReceiveQueueOptions) {
    this.#options = options;
  }

  /**
   * Ask for the next message.
   *
   * @returns whether it is there already; otherwise `complete` tells.
   */
  post(tag: number, target: Uint8Array): boolean {
    if (this.#posted !== undefined)
      throw new InvariantError(`a message was asked for while one under tag ${this.#posted.tag} is in flight`);
    const frames = frameCount(target.byteLength, this.#options);
    const posted = { tag, target, frames, claimed: new Uint8Array(frames), arrived: 0 };
    this.#posted = posted;
    for (let index = 0; index < frames && this.#kept.size > 0; index++) {
      const sequence = (this.#first + index) >>> 0;
      const kept = this.#kept.get(sequence);
      if (kept === undefined) continue;
      this.#check(posted, index, kept.header);
      posted.claimed[index] = 1;
      this.#keptCharge -= this.#chargeOf(kept.header);
      if (kept.whole) this.#absorb(posted, index, sequence, kept);
    }
    this.#earn(messageCharge(target.byteLength, this.#options));
    return this.#finish(posted);
  }

  /**
   * The next message itself, where it came whole, in one frame and as it is; the caller gives its memory back.
   * Otherwise undefined.
   */
  takeKept(tag: number, byteLength: number): Uint8Array | undefined {
    const kept = this.#kept.get(this.#first);
    if (byteLength === 0 || kept?.whole !== true || this.#posted !== undefined) return undefined;
    const { header, payload } = kept;
    if ((header.flags & frameFlags.coded) !== 0 || byteLength > this.#options.frameBytes) return undefined;
    this.#check({ tag, target: { byteLength }, frames: 1 }, 0, header);
    this.#kept.delete(this.#first);
    this.#keptCharge -= this.#chargeOf(header);
    this.#first = (this.#first + 1) >>> 0;
    this.#earn(frameCharge(byteLength));
    return payload;
  }

  /** The tag of the next message, where it has begun to come before it was asked for. */
  get keptTag(): number | undefined {
    return this.#posted === undefined ? this.#kept.get(this.#first)?.header.tag : undefined;
  }

  /** Where the payload of a frame is to land. */
  target(header: FrameHeader): Uint8Array {
    const { memory } = this.#options;
    const posted = this.#posted;
    const index = (header.sequence - this.#first) >>> 0;
    if (posted === undefined || index >= posted.frames) {
      this.#keptCharge += this.#chargeOf(header);
      if (this.#keptCharge > this.#options.earlyBytes)
        throw new WireError(
          "frame-length",
          `a peer sent ${this.#keptCharge} bytes that nobody has asked for, ${this.#options.earlyBytes} are allowed; it does not keep to the credit it was given`,
        );
      return this.#keep(header, memory.take(header.length));
    }
    this.#check(posted, index, header);
    if (posted.claimed[index] === 1) this.#twice(header);
    posted.claimed[index] = 1;
    if ((header.flags & frameFlags.coded) !== 0) return this.#keep(header, memory.take(header.length));
    const begin = index * this.#options.frameBytes;
    return posted.target.subarray(begin, begin + header.length);
  }

  /** A frame has landed, whole. */
  frame(header: FrameHeader): void {
    if (header.length === 0) this.#landEmpty(header);
    const posted = this.#posted;
    const index = (header.sequence - this.#first) >>> 0;
    const kept = this.#kept.get(header.sequence);
    if (kept !== undefined) {
      kept.whole = true;
      if (posted === undefined || index >= posted.frames) return;
      this.#absorb(posted, index, header.sequence, kept);
    } else if (posted !== undefined) posted.arrived += 1;
    if (posted !== undefined && this.#finish(posted)) this.#options.complete();
  }

  /** The payload of a frame that has begun to land did not come whole: it is as if it had not come at all. */
  forget(header: FrameHeader): void {
    const posted = this.#posted;
    const index = (header.sequence - this.#first) >>> 0;
    const claimed = posted !== undefined && index < posted.frames;
    if (claimed) posted.claimed[index] = 0;
    const kept = this.#kept.get(header.sequence);
    if (kept === undefined) return;
    this.#kept.delete(header.sequence);
    this.#options.memory.give(kept.payload);
    if (!claimed) this.#keptCharge -= this.#chargeOf(header);
  }

  /** An empty payload is not asked a target for, so its place is found here. */
  #landEmpty(header: FrameHeader): void {
    const posted = this.#posted;
    const index = (header.sequence - this.#first) >>> 0;
    if (posted !== undefined && index < posted.frames) {
      this.#check(posted, index, header);
      if (posted.claimed[index] === 1) this.#twice(header);
      posted.claimed[index] = 1;
    } else {
      this.#keptCharge += frameCharge(0);
      if (this.#keptCharge > this.#options.earlyBytes)
        throw new WireError(
          "frame-length",
          `a peer sent ${this.#kept.size + 1} empty messages that nobody has asked for; it does not keep to the credit it was given`,
        );
      this.#keep(header, empty);
    }
  }

  #keep(header: FrameHeader, payload: Uint8Array): Uint8Array {
    if (this.#kept.has(header.sequence)) this.#twice(header);
    this.#kept.set(header.sequence, { header, payload, whole: false });
    return payload;
  }

  #absorb(posted: Posted, index: number, sequence: number, { header, payload }: Kept): void {
    const { frameBytes, codec, memory } = this.#options;
    const place = posted.target.subarray(index * frameBytes, (index + 1) * frameBytes);
    if ((header.flags & frameFlags.coded) === 0) place.set(payload);
    else codec!.decode(payload, place); // #check has seen that there is one
    this.#kept.delete(sequence);
    if (payload.byteLength > 0) memory.give(payload);
    posted.arrived += 1;
  }

  #finish(posted: Posted): boolean {
    if (posted.arrived < posted.frames) return false;
    this.#first = (this.#first + posted.frames) >>> 0;
    this.#posted = undefined;
    return true;
  }

  // A coded frame is charged for what it stands for, which its receiver cannot know before it decodes; a full frame is
  // the most.
  #chargeOf(header: FrameHeader): number {
    return frameCharge(header.length);
  }

  // Half of the credit is always with the sender, so small messages are acknowledged together.
  #earn(charge: number): void {
    this.#owed += charge;
    if (this.#owed < this.#options.earlyBytes / 2) return;
    this.#options.grant(this.#owed);
    this.#owed = 0;
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
    if (!last && isLast)
      disagree(`a message goes on after ${byteLength} bytes, which is all that was expected`, posted.tag);
    if (coded ? header.length >= expected : header.length !== expected)
      disagree(`a message has ${index * frameBytes + header.length} bytes, ${byteLength} were expected`, posted.tag);
    if (coded && codec === undefined)
      throw new WireError(
        "frame-header",
        "a coded frame came to a rank without a codec; give all ranks of a job the same settings",
      );
  }

  #twice(header: FrameHeader): never {
    throw new WireError(
      "frame-sequence",
      `frame ${header.sequence} of lane ${header.stream} came twice; frames were repeated on the way, so the link cannot be trusted`,
    );
  }
}

import { WireError } from "../wire/errors.ts";
import { FrameCopies } from "./frame-copies.ts";
import type { OutgoingFrame } from "./link.ts";

// So small a payload is copied as soon as the system has it, which takes 10 µs at most and comes while it travels.
const smallBytes = 65_536;
// And so much that somebody waits for, which takes less than the wait for an acknowledgment.
const soonBytes = 262_144;
// Beyond it, memory that was lent stays lent until its frame is acknowledged.
const mostCopied = 16 * 2 ** 20;
// Where acknowledgments take longer than this, lent memory comes home sooner by a copy.
const slowMilliseconds = 2;

/** A frame that the peer may not have yet. */
export interface SentFrame {
  frame: OutgoingFrame;
  /** Told when the system has it. */
  readonly handedOver: (() => void) | undefined;
  taken: boolean;
  /** Its payload may change again; undefined once it has been said, and for a payload that never changes. */
  freed: (() => void) | undefined;
  copied: boolean;
  /** When it was given to the system, in milliseconds. */
  sentAt: number;
}

const isLent = ({ freed, copied }: SentFrame): boolean => freed !== undefined && !copied;

/**
 * The frames that one socket has sent and its peer has not acknowledged, in order: what is to be sent again after the
 * connection broke.
 *
 * A frame's number is how many were sent before, modulo 2^32. Large payloads stay where they are, lent, until they are
 * acknowledged; small ones are copied, and large ones when somebody waits for their memory and the peer is slow to
 * acknowledge. At most 16 MiB are copies.
 */
export class Unacknowledged {
  readonly #frames: SentFrame[] = [];
  readonly #copies = new FrameCopies();
  /** Number of the first of them. */
  #first = 0;
  #quickest = Infinity;
  /** Whether somebody waits for memory. */
  #hurried = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  get frames(): readonly SentFrame[] {
    return this.#frames;
  }

  push(frame: OutgoingFrame, handedOver?: () => void, freed?: () => void): SentFrame {
    const sent: SentFrame = { frame, handedOver, freed, taken: false, copied: false, sentAt: performance.now() };
    this.#frames.push(sent);
    if (this.#hurried) this.#arm();
    return sent;
  }

  /** The system has taken a frame. */
  handOver(sent: SentFrame): void {
    if (sent.taken) return;
    sent.taken = true;
    sent.handedOver?.();
    if (isLent(sent) && sent.frame.payload.byteLength <= smallBytes && this.#mayCopy(sent)) this.#copy(sent);
    if (sent.copied) this.#free(sent);
  }

  /** Whether the peer can have had `count` frames: all that it acknowledged, and none that was not sent. */
  allows(count: number): boolean {
    return (count - this.#first) >>> 0 <= this.#frames.length;
  }

  /**
   * The peer has had `count` frames.
   * @throws WireError when it cannot.
   */
  acknowledge(count: number): void {
    if (!this.allows(count))
      throw new WireError(
        "frame-sequence",
        `the peer says that it has had ${count} frames, but ${this.#first} to ${(this.#first + this.#frames.length) >>> 0} can be; the stream is damaged`,
      );
    const now = performance.now();
    for (let rest = (count - this.#first) >>> 0; rest > 0; rest--) {
      const sent = this.#frames.shift()!;
      this.#quickest = Math.min(this.#quickest, now - sent.sentAt);
      this.#first = (this.#first + 1) >>> 0;
      this.handOver(sent); // the peer may be quicker than the system's word
      this.#free(sent);
      if (sent.copied) this.#copies.takeBack(sent.frame.payload);
    }
    this.#hurried &&= this.#frames.length > 0;
  }

  /** Somebody waits for memory that was lent. It comes home by acknowledgments, or by copies where these are slow. */
  hurry(): void {
    this.#hurried = true;
    let lentBytes = 0;
    for (const sent of this.#frames) if (isLent(sent)) lentBytes += sent.frame.payload.byteLength;
    if (lentBytes === 0) return;
    if (lentBytes <= soonBytes) this.#copyThoseBefore(Infinity);
    else this.#arm();
  }

  /** Nothing is sent again. Memory that is lent stays so. */
  clear(): void {
    clearTimeout(this.#timer);
    this.#frames.length = 0;
  }

  get #slow(): boolean {
    return this.#quickest > slowMilliseconds && this.#quickest < Infinity;
  }

  #arm(): void {
    if (this.#timer !== undefined || !this.#frames.some(isLent)) return;
    if (this.#slow) return this.#copyThoseBefore(Infinity);
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#copyThoseBefore(performance.now() - slowMilliseconds / 2);
      this.#arm();
    }, slowMilliseconds);
  }

  #copyThoseBefore(time: number): void {
    for (const sent of this.#frames) {
      if (sent.sentAt > time) return;
      if (!isLent(sent)) continue;
      if (!this.#mayCopy(sent)) return;
      this.#copy(sent);
      if (sent.taken) this.#free(sent); // else the system still reads it
    }
  }

  #mayCopy({ frame }: SentFrame): boolean {
    return this.#copies.bytes + frame.payload.byteLength <= mostCopied;
  }

  #copy(sent: SentFrame): void {
    sent.frame = { ...sent.frame, payload: this.#copies.of(sent.frame.payload) };
    sent.copied = true;
  }

  #free(sent: SentFrame): void {
    const { freed } = sent;
    sent.freed = undefined;
    freed?.();
  }
}

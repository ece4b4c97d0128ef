import { WireError } from "../wire/errors.ts";
import { FrameCopies } from "./frame-copies.ts";
import type { OutgoingFrame } from "./link.ts";

// Payloads up to this size are copied when the system has accepted them. A copy takes at most 10 µs and overlaps with
// sending.
const smallBytes = 65_536;
// If a thread waits for borrowed memory, and all borrowed payloads together have at most this size, the payloads are
// copied. Copying takes less time than waiting for an acknowledgment.
const soonBytes = 262_144;
// Maximum total size of copies. Above this size, borrowed memory stays borrowed until its frame is acknowledged.
const maxCopied = 16 * 2 ** 20;
// If acknowledgments take longer than this time, payloads are copied to release their memory earlier.
const slowMilliseconds = 2;

/** A sent frame that the peer may not have received yet. */
export interface SentFrame {
  frame: OutgoingFrame;
  /** Called when the system has accepted the frame. Undefined after the call. */
  readonly handedOver: (() => void) | undefined;
  taken: boolean;
  /** Called when the payload may be changed. Undefined after the call, and for a payload that never changes. */
  freed: (() => void) | undefined;
  copied: boolean;
  /** Time at which the frame was written, in milliseconds. */
  sentAt: number;
}

const isLent = ({ freed, copied }: SentFrame): boolean => freed !== undefined && !copied;

/**
 * Frames that one socket has sent and its peer has not acknowledged, in order. If the connection breaks, these frames
 * are sent again.
 *
 * The number of a frame is the number of frames sent before it, modulo 2^32. The memory of a large payload is borrowed
 * until its frame is acknowledged. Small payloads are copied. Large payloads are also copied if a thread waits for
 * their memory and the peer acknowledges slowly. Copies take at most 16 MiB.
 */
export class Unacknowledged {
  readonly #frames: SentFrame[] = [];
  readonly #copies = new FrameCopies();
  /** Sequence number of `#frames[0]`, the oldest unacknowledged frame. */
  #first = 0;
  #quickest = Infinity;
  /** Whether a thread waits for borrowed memory. */
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

  /** Records that the system has accepted a frame. */
  markWritten(sent: SentFrame): void {
    if (sent.taken) return;
    sent.taken = true;
    sent.handedOver?.();
    if (isLent(sent) && sent.frame.payload.byteLength <= smallBytes && this.#mayCopy(sent)) this.#copy(sent);
    if (sent.copied) this.#free(sent);
  }

  /**
   * Whether the peer can have received `count` frames: at least the number of acknowledged frames, and at most the
   * number of sent frames.
   */
  allows(count: number): boolean {
    return (count - this.#first) >>> 0 <= this.#frames.length;
  }

  /**
   * Records that the peer has received `count` frames.
   *
   * @throws WireError if the peer cannot have received `count` frames, see `allows`.
   */
  acknowledge(count: number): void {
    if (!this.allows(count))
      throw new WireError(
        "frame-sequence",
        `the peer acknowledges ${count} frames, but only ${this.#first} to ${(this.#first + this.#frames.length) >>> 0} are possible; the stream is damaged`,
      );
    const now = performance.now();
    for (let rest = (count - this.#first) >>> 0; rest > 0; rest--) {
      const sent = this.#frames.shift()!;
      this.#quickest = Math.min(this.#quickest, now - sent.sentAt);
      this.#first = (this.#first + 1) >>> 0;
      this.markWritten(sent); // The acknowledgment may arrive before the system's callback.
      this.#free(sent);
      if (sent.copied) this.#copies.takeBack(sent.frame.payload);
    }
    this.#hurried &&= this.#frames.length > 0;
  }

  /**
   * Records that a thread waits for borrowed memory. The memory is released by acknowledgments, or by copies if
   * acknowledgments are slow.
   */
  hurry(): void {
    this.#hurried = true;
    let lentBytes = 0;
    for (const sent of this.#frames) if (isLent(sent)) lentBytes += sent.frame.payload.byteLength;
    if (lentBytes === 0) return;
    if (lentBytes <= soonBytes) this.#copyThoseBefore(Infinity);
    else this.#arm();
  }

  /** Forgets all frames, so that no frame is sent again. Borrowed memory stays borrowed. */
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
      if (sent.taken) this.#free(sent); // Otherwise the system still reads the payload.
    }
  }

  #mayCopy({ frame }: SentFrame): boolean {
    return this.#copies.bytes + frame.payload.byteLength <= maxCopied;
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

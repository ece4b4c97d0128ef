import { RevokedPeerError } from "../security/errors.ts";
import { WireError } from "../wire/errors.ts";
import { type FrameHeader, frameFlags } from "../wire/frame.ts";
import type { FrameSocket } from "./frame-socket.ts";
import type { LinkReceiver, OutgoingFrame } from "./link.ts";
import { type SentFrame, Unacknowledged } from "./unacknowledged.ts";

// Maximum number of received bytes or frames before an acknowledgment is sent. This limits the number of frames that
// the peer must keep for resending. A ping acknowledges earlier.
const acknowledgeBytes = 2 ** 20;
const acknowledgeFrames = 64;
// The last frame of a message is acknowledged immediately if its payload is larger than this size, because its sender
// may wait for the memory.
const promptBytes = 65_536;
const empty = new Uint8Array(0);

/** Establishes a new connection in place of a broken connection. */
export interface Redial {
  /**
   * Retries until the peer responds or `signal` is aborted. Sends `received` to the peer, and calls `socket.resume`
   * with the peer's response. Rejects if retrying is pointless.
   */
  (socket: ResumableSocket, signal: AbortSignal): Promise<void>;
}

export interface ResumableSocketOptions {
  /** Session of the other end. A restarted rank has a different session. */
  readonly session: string;
  /**
   * Whether the connection ends only when one of the two processes ends, so that no frames need to be kept for
   * resending.
   */
  readonly direct: boolean;
  /**
   * Number of sockets of the link per direction. With several sockets, only one socket receives the last frame of a
   * message.
   */
  readonly width: number;
  /** Reconnects. Absent for an accepted socket, because the dialing peer reconnects. */
  readonly redial?: Redial;
}

/**
 * Carries frames between two ranks over one connection at a time. When a connection breaks, a new connection replaces
 * it, and frames that the peer has not received are sent again. The end that dialed dials again; the accepting end
 * waits.
 *
 * Both ends count the sent and received frames of the link's owner, modulo 2^32. The link's own frames and control
 * frames carry the number of received frames. When a new connection replaces the old connection, both ends send this
 * number first. As a result, every frame is received exactly once, in order.
 *
 * Cost: a copy of small payloads, and an acknowledgment of 32 bytes per MiB or per large message. A send handle
 * completes one round trip later. A direct connection between two processes of one machine breaks only when one of the
 * processes ends, and does not have these costs.
 */
export class ResumableSocket {
  readonly session: string;
  readonly #direct: boolean;
  readonly #width: number;
  readonly #redial: Redial | undefined;
  readonly #unacknowledged = new Unacknowledged();
  readonly #abort = new AbortController();
  #frames: FrameSocket | undefined;
  #receiver: LinkReceiver | undefined;
  #heardAt = performance.now();
  #received = 0;
  /** Received frames that are not acknowledged yet. */
  #unreportedFrames = 0;
  #unreportedBytes = 0;
  #isScheduled = false;
  #largeReceived = false;
  /** Whether the other end of the current connection is known to be ready for frames. */
  #ready = true;
  #byeRequested = false;
  #ended = false;

  constructor(frames: FrameSocket, { session, direct, width, redial }: ResumableSocketOptions) {
    this.#frames = frames;
    this.session = session;
    this.#direct = direct;
    this.#width = width;
    this.#redial = redial;
  }

  /** Number of received frames of the link's owner, modulo 2^32. */
  get received(): number {
    return this.#received;
  }

  /** Number of bytes that the system has not accepted yet. Infinity while there is no connection. */
  get outstanding(): number {
    return this.#frames?.outstanding ?? Infinity;
  }

  /** Time at which the last data was received from the peer. */
  get heardAt(): number {
    return Math.max(this.#heardAt, this.#frames?.heardAt ?? 0);
  }

  /** Whether the socket has ended: no more frames are sent or received. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Calls `call` when the socket has ended, or immediately if it has already ended. */
  onEnd(call: () => void): void {
    if (this.#ended) call();
    else this.#abort.signal.addEventListener("abort", call, { once: true });
  }

  open(receiver: LinkReceiver): void {
    this.#receiver = receiver;
    this.#heardAt = performance.now();
    this.#listen();
  }

  write(frame: OutgoingFrame, handedOver?: () => void, freed?: () => void): void {
    // Write even after the end, because the connection may still exist and carry the last frames.
    if (this.#direct || this.#ended) {
      if (freed === undefined) return this.#frames?.write(frame, handedOver);
      return this.#frames?.write(frame, () => {
        handedOver?.();
        freed();
      });
    }
    const sent = this.#unacknowledged.push(frame, handedOver, freed);
    if (this.#ready) this.#put(sent);
  }

  ping(): void {
    if (this.#frames?.outstanding === 0) this.#sendReport("ping");
  }

  hurry(): void {
    if (!this.#direct) this.#unacknowledged.hurry();
  }

  /** Sends a goodbye after all pending writes. */
  bye(): void {
    this.#byeRequested = true;
    if (this.#ready) this.#frames?.bye();
  }

  /**
   * Whether a new connection may replace the current connection. The new connection must be from the same peer
   * (`session`), and `peerHas`, the number of frames that the peer has received, must be possible. False after the
   * socket has ended.
   */
  mayResume(session: string, peerHas: number): boolean {
    return !this.#ended && session === this.session && this.#unacknowledged.allows(peerHas);
  }

  /**
   * Whether the same peer may start the link again, because this end has received no frames of the link's owner, and
   * the peer has acknowledged no frames.
   */
  isUntouched(session: string): boolean {
    return this.#received === 0 && this.mayResume(session, 0);
  }

  /**
   * Ends the current connection, so that a new connection can replace it. Frames of the old connection are no longer
   * received.
   *
   * @returns number of frames received so far, which must be the first data sent to the peer.
   */
  replace(): number {
    this.#drop();
    return this.#received;
  }

  /**
   * Continues on the new connection `frames`. Frames that the peer has not received are sent first. `peerHas` is the
   * number of frames that the peer has received.
   */
  resume(frames: FrameSocket, peerHas: number): void {
    this.#frames = frames;
    this.#heardAt = performance.now();
    this.#unacknowledged.acknowledge(peerHas);
    if (this.#receiver !== undefined) this.#listen();
    // The accepting end waits for a frame, because the other end may still be checking the response.
    this.#ready = this.#redial !== undefined;
    if (this.#ready) this.#resume();
  }

  /** Ends the socket. Pending writes may still be sent. */
  leave(): void {
    this.#end();
    this.#frames?.leave();
  }

  destroy(): void {
    this.#end();
    this.#frames?.destroy();
  }

  #end(): void {
    this.#ended = true;
    this.#abort.abort();
    this.#unacknowledged.clear();
  }

  #listen(): void {
    const receiver = this.#receiver!;
    const frames = this.#frames!;
    frames.open({
      limit: (header) => receiver.limit(header),
      target: (header) => receiver.target(header),
      torn: (header) => receiver.torn(header),
      frame: (header, payload) => this.#receive(header, payload),
      closed: (error) => this.#closed(frames, error),
    });
  }

  #receive(header: FrameHeader, payload: Uint8Array): void {
    if (this.#direct) {
      if (header.type === "ping") return;
      this.#received = (this.#received + 1) >>> 0;
      return this.#receiver!.frame(header, payload);
    }
    if (header.type !== "data") this.#unacknowledged.acknowledge(header.sequence);
    if (!this.#ready) {
      this.#ready = true;
      this.#resume();
    }
    if (header.type === "ping" || header.type === "acknowledge") return;
    this.#received = (this.#received + 1) >>> 0;
    this.#unreportedFrames += 1;
    this.#unreportedBytes += header.length;
    if (header.length > promptBytes) this.#largeReceived = true;
    const isWaitedFor = this.#largeReceived && ((header.flags & frameFlags.last) !== 0 || this.#width > 1);
    if (isWaitedFor) this.#sendReport("acknowledge");
    else if (this.#unreportedBytes >= acknowledgeBytes || this.#unreportedFrames >= acknowledgeFrames)
      this.#reportLater();
    this.#receiver!.frame(header, payload);
  }

  /**
   * Schedules a report of the number of received frames for the time after the current frame was processed. If
   * processing sends credit, no report is needed, because credit also carries the number.
   */
  #reportLater(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      if (this.#unreportedFrames > 0) this.#sendReport("acknowledge");
    });
  }

  #sendReport(type: "ping" | "acknowledge"): void {
    this.#frames?.write({ type, flags: 0, stream: 0, sequence: this.#received, tag: 0, payload: empty });
    this.#resetUnreported();
  }

  #resetUnreported(): void {
    this.#unreportedFrames = 0;
    this.#unreportedBytes = 0;
    this.#largeReceived = false;
  }

  #put(sent: SentFrame): void {
    const { frame } = sent;
    const numbered = frame.type === "data" ? frame : { ...frame, sequence: this.#received };
    if (frame.type !== "data") this.#resetUnreported();
    this.#frames?.write(numbered, () => this.#unacknowledged.markWritten(sent));
  }

  #resume(): void {
    this.#sendReport("acknowledge");
    for (const sent of this.#unacknowledged.frames.slice()) this.#put(sent);
    if (this.#byeRequested) this.#frames?.bye();
  }

  /** Ends the current connection without reading from it again. */
  #drop(): void {
    const frames = this.#frames;
    this.#frames = undefined;
    this.#ready = false;
    if (frames === undefined) return;
    this.#heardAt = Math.max(this.#heardAt, frames.heardAt);
    frames.destroy();
    const torn = frames.abandon();
    if (torn !== undefined) this.#receiver?.torn(torn);
  }

  #closed(frames: FrameSocket, error: Error | undefined): void {
    if (this.#ended || frames !== this.#frames) return;
    if (error !== undefined && this.#byeRequested && frames.finished) error = undefined; // The peer has received this side's goodbye.
    if (error === undefined || !frames.broken || this.#direct) {
      this.#end();
      this.#receiver!.closed(error);
      return;
    }
    this.#drop();
    this.#redial?.(this, this.#abort.signal).catch((reason: unknown) => {
      if (this.#ended) return;
      this.#end();
      const why = reason instanceof Error ? reason.message : String(reason);
      const known = reason instanceof WireError || reason instanceof RevokedPeerError;
      this.#receiver!.closed(known ? reason : new Error(`${error.message}, and ${why}`, { cause: reason }));
    });
  }
}

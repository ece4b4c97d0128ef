import { RevokedPeerError } from "../security/errors.ts";
import { WireError } from "../wire/errors.ts";
import { type FrameHeader, frameFlags } from "../wire/frame.ts";
import type { FrameSocket } from "./frame-socket.ts";
import type { LinkReceiver, OutgoingFrame } from "./link.ts";
import { type SentFrame, Unacknowledged } from "./unacknowledged.ts";

// A frame is acknowledged after so many bytes or frames at the latest, or with the next sign of life: a bound for what
// the peer keeps.
const unsaidBytes = 2 ** 20;
const unsaidFrames = 64;
// The last frame of a message with payloads as large as this is acknowledged at once: its sender may wait for its
// memory.
const promptBytes = 65_536;
const empty = new Uint8Array(0);

/** Makes a new connection for one that broke. */
export interface Redial {
  /**
   * Try until the peer answers or `signal` is given; tell it `received`, and `socket.resume` what it answers. Rejects
   * when that is of no use.
   */
  (socket: ResumableSocket, signal: AbortSignal): Promise<void>;
}

export interface ResumableSocketOptions {
  /** The other end's: a rank that was started again has another. */
  readonly session: string;
  /** The connection can only end with one of the two processes: nothing is kept to be sent again. */
  readonly direct: boolean;
  /** Of the link: of several sockets, only one brings the last frame of a message. */
  readonly width: number;
  /** Of who has dialled. */
  readonly redial?: Redial;
}

/**
 * Frames between two ranks over one socket at a time: when its connection breaks, another takes its place, and what the
 * peer has not had is sent again. Who has dialled dials again; who has accepted waits for it.
 *
 * Both ends count the frames of the link's owner that they sent and took, modulo 2^32. Frames of this side's own and
 * those that carry control say how many came; when a connection takes another's place, both ends say so first. So every
 * frame is taken once, in order.
 *
 * Cost: a copy of what is small, an acknowledgment of 32 bytes per MiB or large message; a handle comes home a round
 * trip later. None of it on a direct connection of two processes of one machine, which breaks only when one of them
 * ends.
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
  /** Frames and bytes that came and are not acknowledged. */
  #unsaidFrames = 0;
  #unsaidBytes = 0;
  #saying = false;
  #largeCame = false;
  /** Whether the other end of a new connection is known to be ready for frames. */
  #ready = true;
  #saidBye = false;
  #ended = false;

  constructor(frames: FrameSocket, { session, direct, width, redial }: ResumableSocketOptions) {
    this.#frames = frames;
    this.session = session;
    this.#direct = direct;
    this.#width = width;
    this.#redial = redial;
  }

  /** Frames of the owner that have come, modulo 2^32. */
  get received(): number {
    return this.#received;
  }

  /** Bytes given to the system that it has not taken; infinite while there is no connection. */
  get outstanding(): number {
    return this.#frames?.outstanding ?? Infinity;
  }

  /** When the peer was last heard. */
  get heardAt(): number {
    return Math.max(this.#heardAt, this.#frames?.heardAt ?? 0);
  }

  /** Whether nothing more is sent or taken. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Call when that is so. */
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
    // After the end, too: the connection may stand, and carry last words.
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
    if (this.#frames?.outstanding === 0) this.#say("ping");
  }

  hurry(): void {
    if (!this.#direct) this.#unacknowledged.hurry();
  }

  /** Say goodbye behind all that was written. */
  bye(): void {
    this.#saidBye = true;
    if (this.#ready) this.#frames?.bye();
  }

  /**
   * Whether a new connection may take the place of this one's: of the same peer, which had as many frames as can be.
   */
  mayResume(session: string, peerHas: number): boolean {
    return !this.#ended && session === this.session && this.#unacknowledged.allows(peerHas);
  }

  /** Whether the same peer may begin once more, since nothing of the owners' was sent or taken yet. */
  isUntouched(session: string): boolean {
    return this.#received === 0 && this.mayResume(session, 0);
  }

  /**
   * Let a connection take the place of the one before, whose frames are no longer taken.
   *
   * @returns how many frames came until then, to be told to the peer before anything else.
   */
  replace(): number {
    this.#drop();
    return this.#received;
  }

  /** Go on over `frames`, with what the peer has not had. */
  resume(frames: FrameSocket, peerHas: number): void {
    this.#frames = frames;
    this.#heardAt = performance.now();
    this.#unacknowledged.acknowledge(peerHas);
    if (this.#receiver !== undefined) this.#listen();
    // Who has accepted waits for a frame: the other end may still be looking at the answer.
    this.#ready = this.#redial !== undefined;
    if (this.#ready) this.#goOn();
  }

  /** End. What was written may still leave. */
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
      frame: (header, payload) => this.#take(header, payload),
      closed: (error) => this.#closed(frames, error),
    });
  }

  #take(header: FrameHeader, payload: Uint8Array): void {
    if (this.#direct) {
      if (header.type === "ping") return;
      this.#received = (this.#received + 1) >>> 0;
      return this.#receiver!.frame(header, payload);
    }
    if (header.type !== "data") this.#unacknowledged.acknowledge(header.sequence);
    if (!this.#ready) {
      this.#ready = true;
      this.#goOn();
    }
    if (header.type === "ping" || header.type === "acknowledge") return;
    this.#received = (this.#received + 1) >>> 0;
    this.#unsaidFrames += 1;
    this.#unsaidBytes += header.length;
    if (header.length > promptBytes) this.#largeCame = true;
    const isWaitedFor = this.#largeCame && ((header.flags & frameFlags.last) !== 0 || this.#width > 1);
    if (isWaitedFor) this.#say("acknowledge");
    else if (this.#unsaidBytes >= unsaidBytes || this.#unsaidFrames >= unsaidFrames) this.#sayLater();
    this.#receiver!.frame(header, payload);
  }

  /** After what the frame at hand brings about, which may be credit that carries the number as well. */
  #sayLater(): void {
    if (this.#saying) return;
    this.#saying = true;
    setImmediate(() => {
      this.#saying = false;
      if (this.#unsaidFrames > 0) this.#say("acknowledge");
    });
  }

  #say(type: "ping" | "acknowledge"): void {
    this.#frames?.write({ type, flags: 0, stream: 0, sequence: this.#received, tag: 0, payload: empty });
    this.#said();
  }

  #said(): void {
    this.#unsaidFrames = 0;
    this.#unsaidBytes = 0;
    this.#largeCame = false;
  }

  #put(sent: SentFrame): void {
    const { frame } = sent;
    const numbered = frame.type === "data" ? frame : { ...frame, sequence: this.#received };
    if (frame.type !== "data") this.#said();
    this.#frames?.write(numbered, () => this.#unacknowledged.handOver(sent));
  }

  #goOn(): void {
    this.#say("acknowledge");
    for (const sent of this.#unacknowledged.frames.slice()) this.#put(sent);
    if (this.#saidBye) this.#frames?.bye();
  }

  /** Take nothing more from the connection at hand. */
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
    if (error !== undefined && this.#saidBye && frames.finished) error = undefined; // it has heard ours
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

import type { Socket } from "node:net";
import { systemClock } from "../clock.ts";
import { FailureDetector } from "../failure-detection/failure-detector.ts";
import { goodbyeMilliseconds } from "../failure-detection/goodbye.ts";
import type { Heartbeat } from "../failure-detection/heartbeat.ts";
import { type FrameSeal, sealBytes } from "../security/frame-seal.ts";
import { FrameReader } from "../wire/frame-reader.ts";
import { encodeHeader, type FrameType } from "../wire/frame.ts";

/** How a connection ended: the peer said goodbye, this side did, or it broke. */
export type Ending =
  | { readonly how: "peer-closed" | "closed" }
  | { readonly how: "broken"; readonly reason: string; readonly error: unknown };

/** Who holds a control connection. */
export interface ConnectionOwner {
  /** The most bytes that a frame of this type may announce now; 0 refuses a payload. */
  limit(type: FrameType): number;
  /**
   * Take a frame other than bye, and other than ping once the connection is secure. What this throws breaks the
   * connection.
   */
  frame(type: FrameType, payload: Uint8Array): void;
  /** What to tell a peer whose bytes cannot be read, before the connection ends. */
  farewell?(error: unknown): FrameType | undefined;
  /** Called when nothing was heard for `suspectMilliseconds` of the heartbeat, and when something is again. */
  suspected?(isSuspected: boolean): void;
  /** Called once, last of all. */
  ended(ending: Ending): void;
}

/** Bytes that may wait for a peer that does not read: two of the largest messages. */
const unsentBytes = 128 * 1024 * 1024;
const nothing = new Uint8Array(0);

// What a ping says: for how many milliseconds a main thread has done nothing, u32, little endian.
const idleBytes = 4;
const encodeIdle = (milliseconds: number): Uint8Array => {
  const bytes = new Uint8Array(idleBytes);
  new DataView(bytes.buffer).setUint32(0, Math.min(Math.round(milliseconds), 2 ** 32 - 1), true);
  return bytes;
};
/** Nothing is said by a peer of a version before. */
const decodeIdle = ({ buffer, byteOffset, byteLength }: Uint8Array): number =>
  byteLength < idleBytes ? 0 : new DataView(buffer, byteOffset, byteLength).getUint32(0, true);

/**
 * Frames both ways over one socket, pings when there is nothing to say, and a goodbye, so that closing is not taken for
 * a loss. Once both sides have proven themselves, every frame carries a seal.
 */
export class ControlConnection {
  readonly #socket: Socket;
  readonly #owner: ConnectionOwner;
  readonly #closed: Promise<void>;
  #sequence = 0;
  #seals: { readonly sealer: FrameSeal; readonly opener: FrameSeal } | undefined;
  #detector: FailureDetector | undefined;
  #heardAt = 0;
  #sentAt = 0;
  #stuckMilliseconds = Infinity;
  #peerClosed = false;
  #closing = false;
  #broken: { readonly reason: string; readonly error: unknown } | undefined;

  constructor(socket: Socket, owner: ConnectionOwner) {
    this.#socket = socket;
    this.#owner = owner;
    const reader = new FrameReader({
      limit: ({ type }) =>
        (type === "ping" ? idleBytes : type === "bye" ? 0 : owner.limit(type)) +
        (this.#seals === undefined ? 0 : sealBytes),
      target: ({ length }) => new Uint8Array(length),
      frame: ({ type }, payload) => this.#take(type, payload),
    });
    socket.setNoDelay(true);
    socket.on("data", (chunk: Uint8Array) => {
      if (this.over) return;
      this.#heardAt = systemClock.now();
      this.#guard(() => reader.push(chunk));
    });
    socket.on("end", () => {
      if (!this.over) this.#guard(() => reader.end());
    });
    socket.on("error", (error: NodeJS.ErrnoException) =>
      this.break(`its connection failed (${error.code ?? error.message})`, error),
    );
    this.#closed = new Promise((resolve) => {
      socket.once("close", () => {
        this.#detector?.close();
        resolve();
        owner.ended(this.#ending());
      });
    });
  }

  /** Whether nothing more will be sent or taken. */
  get over(): boolean {
    return this.#closing || this.#broken !== undefined || this.#peerClosed || this.#socket.destroyed;
  }

  /** Hand a frame to the system. Returns false where the connection is over. */
  send(type: FrameType, payload: Uint8Array = nothing): boolean {
    if (this.over) return false;
    if (this.#socket.writableLength + payload.byteLength > unsentBytes) {
      this.break(`it does not read: ${this.#socket.writableLength} bytes wait for it`);
      return false;
    }
    this.#write(type, payload);
    return true;
  }

  /** Both sides have proven themselves: seal all that is sent from now on, and take nothing without a seal. */
  secure(seals: { readonly sealer: FrameSeal; readonly opener: FrameSeal }): void {
    this.#seals = seals;
  }

  /**
   * Begin to ping, and to expect to be heard from.
   *
   * @param idleMilliseconds for how long the thread that this connection speaks for has done nothing; pings tell it.
   * Default: that thread is this one, and does not ping at all while it is busy.
   */
  beat(heartbeat: Heartbeat, idleMilliseconds: () => number = () => 0): void {
    this.#stuckMilliseconds = heartbeat.stuckMilliseconds;
    this.#detector = new FailureDetector(heartbeat);
    this.#detector.watch({
      heardAt: () => this.#heardAt,
      sentAt: () => this.#sentAt,
      ping: () => {
        if (!this.over) this.#write("ping", encodeIdle(idleMilliseconds()));
      },
      suspected: (isSuspected) => {
        if (!this.over) this.#owner.suspected?.(isSuspected);
      },
      lost: (silence) => this.break(`nothing was heard from it for ${(silence / 1000).toFixed(1)} s`),
    });
  }

  /** Let the process end although the connection is open. */
  unref(): void {
    this.#socket.unref();
  }

  /** Say goodbye and wait until the connection is closed, a second at most. */
  async close(): Promise<void> {
    if (!this.over) {
      this.#write("bye", nothing);
      this.#closing = true;
      this.#socket.end();
    }
    this.#socket.ref();
    const late = setTimeout(() => this.#socket.destroy(), goodbyeMilliseconds);
    await this.#closed;
    clearTimeout(late);
  }

  /** End the connection without a goodbye. */
  break(reason: string, error?: unknown): void {
    if (!this.#closing && !this.#peerClosed) this.#broken ??= { reason, error };
    this.#socket.destroy();
  }

  /** Take nothing more, and end the connection once what was written has left. */
  expel(reason: string, error: unknown): void {
    if (this.over) return;
    this.#broken ??= { reason, error };
    this.#socket.destroySoon();
    setTimeout(() => this.#socket.destroy(), goodbyeMilliseconds).unref(); // a peer that does not read holds nobody up
  }

  /** Do what may find that the peer's bytes are none of its protocol. */
  #guard(read: () => void): void {
    try {
      read();
    } catch (error) {
      const last = this.#owner.farewell?.(error);
      if (last !== undefined && !this.over) this.#write(last, nothing);
      this.#broken ??= { reason: error instanceof Error ? error.message : String(error), error };
      if (last === undefined) this.#socket.destroy();
      else this.#socket.destroySoon(); // what was written leaves first
    }
  }

  #write(type: FrameType, payload: Uint8Array): void {
    const pieces = this.#seals === undefined ? [payload] : [payload, this.#seals.sealer.seal(type, payload)];
    const length = pieces.reduce((sum, piece) => sum + piece.byteLength, 0);
    const header = { type, flags: 0, stream: 0, sequence: this.#sequence, tag: 0, length };
    this.#sequence = (this.#sequence + 1) >>> 0;
    this.#sentAt = systemClock.now();
    this.#socket.cork();
    this.#socket.write(encodeHeader(header, pieces));
    for (const piece of pieces) if (piece.byteLength > 0) this.#socket.write(piece);
    this.#socket.uncork();
  }

  #take(type: FrameType, received: Uint8Array): void {
    if (this.over) return;
    const payload = this.#seals === undefined ? received : this.#seals.opener.open(type, received);
    if (type === "ping" && this.#seals !== undefined) {
      const idle = decodeIdle(payload);
      if (idle > this.#stuckMilliseconds)
        this.break(`its process runs, but its main thread has done nothing for ${(idle / 1000).toFixed(1)} s`);
    } else if (type === "bye") {
      this.#peerClosed = true;
      this.#socket.end();
    } else this.#owner.frame(type, payload);
  }

  #ending(): Ending {
    if (this.#closing) return { how: "closed" };
    if (this.#peerClosed) return { how: "peer-closed" };
    return {
      how: "broken",
      ...(this.#broken ?? {
        reason: "its connection closed without a goodbye; its process has ended",
        error: undefined,
      }),
    };
  }
}

import type { Socket } from "node:net";
import { systemClock } from "../clock.ts";
import { FailureDetector } from "../failure-detection/failure-detector.ts";
import { goodbyeMilliseconds } from "../failure-detection/goodbye.ts";
import type { Heartbeat } from "../failure-detection/heartbeat.ts";
import { type FrameSeal, sealBytes } from "../security/frame-seal.ts";
import { FrameReader } from "../wire/frame-reader.ts";
import { encodeHeader, type FrameType } from "../wire/frame.ts";

/**
 * Reason for the end of a connection: the peer sent a goodbye, this process sent a goodbye, or the connection broke.
 */
export type Ending =
  | { readonly how: "peer-closed" | "closed" }
  | { readonly how: "broken"; readonly reason: string; readonly error: unknown };

/** Callbacks of the owner of a control connection. */
export interface ConnectionOwner {
  /** Returns the current maximum payload length for a frame of this type, in bytes; 0 refuses a payload. */
  limit(type: FrameType): number;
  /**
   * Receives a frame other than bye. Pings are also received here until the connection is secure. An exception breaks
   * the connection.
   */
  frame(type: FrameType, payload: Uint8Array): void;
  /**
   * Returns the type of the frame that is sent as a farewell before the connection is closed because of invalid bytes
   * from the peer. Undefined: no farewell is sent.
   */
  farewell?(error: unknown): FrameType | undefined;
  /**
   * Called with true after silence of `suspectMilliseconds` of the heartbeat, and with false when data is received
   * again.
   */
  suspected?(isSuspected: boolean): void;
  /** Called one time, when the connection has ended. No other callback is called afterwards. */
  ended(ending: Ending): void;
}

/** Maximum number of unsent bytes for a peer that does not read: two messages of the maximum size. */
const unsentBytes = 128 * 1024 * 1024;
const nothing = new Uint8Array(0);

// Size of a ping's payload, in bytes. The payload is the number of milliseconds for which a main thread has been
// blocked, a little-endian u32.
const idleBytes = 4;
const encodeIdle = (milliseconds: number): Uint8Array => {
  const bytes = new Uint8Array(idleBytes);
  new DataView(bytes.buffer).setUint32(0, Math.min(Math.round(milliseconds), 2 ** 32 - 1), true);
  return bytes;
};
/**
 * Decodes the payload of a ping: the number of milliseconds for which a main thread has been blocked. If the peer has
 * an earlier version, the payload is empty and the result is 0.
 */
const decodeIdle = ({ buffer, byteOffset, byteLength }: Uint8Array): number =>
  byteLength < idleBytes ? 0 : new DataView(buffer, byteOffset, byteLength).getUint32(0, true);

/**
 * Sends and receives frames over one socket. Sends pings when there are no other frames to send, and a goodbye before
 * closing, so that closing does not count as a loss. After both processes are authenticated, every frame has a seal.
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
      frame: ({ type }, payload) => this.#receive(type, payload),
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

  /** Whether no more frames will be sent or received. */
  get over(): boolean {
    return this.#closing || this.#broken !== undefined || this.#peerClosed || this.#socket.destroyed;
  }

  /** Writes a frame. Returns false if the connection has ended. */
  send(type: FrameType, payload: Uint8Array = nothing): boolean {
    if (this.over) return false;
    if (this.#socket.writableLength + payload.byteLength > unsentBytes) {
      this.break(`it does not read: ${this.#socket.writableLength} bytes wait for it`);
      return false;
    }
    this.#write(type, payload);
    return true;
  }

  /**
   * Seals all sent frames from now on, and accepts only sealed frames. Call this method when both processes are
   * authenticated.
   */
  secure(seals: { readonly sealer: FrameSeal; readonly opener: FrameSeal }): void {
    this.#seals = seals;
  }

  /**
   * Starts to send pings, and to expect pings from the peer.
   *
   * @param idleMilliseconds returns the time for which the main thread has been blocked. Pings report this time.
   * Default: 0, for a connection on the main thread itself, which sends no pings while it is blocked.
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

  /** Allows the process to exit while the connection is open. */
  unref(): void {
    this.#socket.unref();
  }

  /** Sends a goodbye and waits until the connection is closed, at most one second. */
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

  /** Closes the connection without a goodbye. */
  break(reason: string, error?: unknown): void {
    if (!this.#closing && !this.#peerClosed) this.#broken ??= { reason, error };
    this.#socket.destroy();
  }

  /** Stops reading, and closes the connection after pending writes are flushed. */
  expel(reason: string, error: unknown): void {
    if (this.over) return;
    this.#broken ??= { reason, error };
    this.#socket.destroySoon();
    setTimeout(() => this.#socket.destroy(), goodbyeMilliseconds).unref(); // A peer that does not read must not delay the process.
  }

  /** Runs code that may detect invalid bytes of the peer. If the code throws, the connection breaks. */
  #guard(read: () => void): void {
    try {
      read();
    } catch (error) {
      const last = this.#owner.farewell?.(error);
      if (last !== undefined && !this.over) this.#write(last, nothing);
      this.#broken ??= { reason: error instanceof Error ? error.message : String(error), error };
      if (last === undefined) this.#socket.destroy();
      else this.#socket.destroySoon(); // Flush pending writes first.
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

  #receive(type: FrameType, received: Uint8Array): void {
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

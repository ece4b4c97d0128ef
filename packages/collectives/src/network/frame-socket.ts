import type { Socket } from "node:net";
import type { Checksum } from "../wire/crc32c.ts";
import { encodeHeader, type FrameHeader, frameFlags, type FrameType, headerBytes } from "../wire/frame.ts";
import { RevokedPeerError } from "../security/errors.ts";
import { WireError } from "../wire/errors.ts";
import { FrameReader } from "../wire/frame-reader.ts";
import { farewellMilliseconds } from "../failure-detection/goodbye.ts";
import type { LinkReceiver } from "./link.ts";

/**
 * A frame on one socket. Includes the frames of the link itself: hello, welcome and refuse before the link is open, and
 * later ping and bye.
 */
export interface SocketFrame extends Omit<FrameHeader, "length"> {
  readonly type: FrameType;
  readonly payload: Uint8Array;
}

export interface FrameSocketOptions {
  /** Checksum function for payloads. */
  readonly checksum: Checksum;
  /**
   * Whether checksums of data frames cover only headers, because the socket protects payloads (TLS) or the user relies
   * on the checks of the network.
   */
  readonly headerOnly: boolean;
}

/** Type of the `onread` option of a dialed socket, with which the system reads directly into the target memory. */
export interface ReadInto {
  readonly buffer: () => Uint8Array;
  readonly callback: (count: number) => boolean;
}

// Headers and small payloads are read into a buffer and copied; a buffer larger than 64 KiB made no difference
// (docs/experiments.md). If the missing rest of a payload is at least a quarter of the buffer size, the rest is read
// directly into its target.
const stagingBytes = 65_536;
const directBytes = 16_384;
// Maximum number of frames that a peer may send before the owner has opened the link: credit for each lane, and a
// report if the peer gives up.
const waitingFrames = 256;

const empty = new Uint8Array(0);

/**
 * Sends and receives frames over one socket. Payloads travel only from the accepting process to the dialing process,
 * because in Node only a dialed socket can read into given memory. Control frames travel in both directions.
 *
 * Payloads are not copied in JavaScript: the system reads a large payload directly into its target, and writes it
 * directly from the sender's memory.
 */
export class FrameSocket {
  /** Whether checksums of sent data frames cover only headers. */
  headerOnly: boolean;
  /** Time at which the last data was received from the peer. */
  heardAt: number = performance.now();
  /** Number of bytes written to the socket that the system has not accepted yet. */
  outstanding = 0;
  readonly #checksum: Checksum;
  readonly #reader: FrameReader;
  /** Whether the connection itself broke. False if invalid bytes were received over the connection. */
  broken = false;
  /** Whether the peer has closed the connection in an orderly way (FIN), but without a goodbye. */
  finished = false;
  readonly #waiting: { readonly header: FrameHeader; readonly payload: Uint8Array }[] = [];
  #receiver: LinkReceiver | undefined;
  #socket: Socket | undefined;
  #direct = false;
  #byeSent = false;
  #byeReceived = false;
  #closed = false;
  #end: { readonly error: Error | undefined } | undefined; // End, if not reported to the receiver yet.

  constructor(options: FrameSocketOptions) {
    this.#checksum = options.checksum;
    this.headerOnly = options.headerOnly;
    this.#reader = new FrameReader(
      {
        limit: (header) => this.#limit(header),
        target: (header) =>
          this.#receiver === undefined ? new Uint8Array(header.length) : this.#receiver.target(header),
        frame: (header, payload) => this.#frame(header, payload),
      },
      { checksum: options.checksum, inSequence: false },
    );
  }

  /** Returns the value of the `onread` option with which a dialed socket must be created. */
  readInto(): ReadInto {
    const staging = new Uint8Array(stagingBytes);
    return {
      buffer: () => {
        if (this.#closed) return staging;
        const space = this.#reader.space();
        this.#direct = space.byteLength >= directBytes;
        return this.#direct ? space : staging;
      },
      callback: (count) => {
        this.#read(() => (this.#direct ? this.#reader.filled(count) : this.#reader.push(staging.subarray(0, count))));
        return !this.#closed;
      },
    };
  }

  /** Uses a socket that was dialed with `readInto`, or accepted. */
  attach(socket: Socket, how: "dialled" | "accepted"): void {
    this.#socket = socket;
    socket.setNoDelay(true);
    if (how === "accepted") socket.on("data", (chunk: Uint8Array) => this.#read(() => this.#reader.push(chunk)));
    else socket.resume();
    const fail = (error: Error): void => {
      // A connection to a revoked peer was closed intentionally, and must not be re-established.
      this.broken ||= !this.#closed && !(error instanceof RevokedPeerError);
      this.#close(this.#byeReceived ? undefined : error);
    };
    socket.on("error", fail);
    const ended = (): void => fail(new Error("its connection closed without a goodbye"));
    socket.on("end", () => {
      this.#read(() => this.#reader.end());
      this.finished = !this.#closed;
      ended();
    });
    socket.on("close", ended);
  }

  /** Delivers frames to `receiver`, beginning with the frames received before this call. */
  open(receiver: LinkReceiver): void {
    this.#receiver = receiver;
    this.#guard(() => {
      for (const { header, payload } of this.#waiting.splice(0)) receiver.frame(header, payload);
    });
    const end = this.#end;
    this.#end = undefined;
    if (end !== undefined) receiver.closed(end.error);
  }

  /** Buffers received frames, except data frames, until `open` is called again. */
  hold(): void {
    this.#receiver = undefined;
  }

  /**
   * Stops reading. From now on the rank's compute thread reads and writes the socket by its file descriptor, which is
   * valid until `destroy`. Call this method only while the peer is known not to send.
   */
  detach(): number {
    this.#closed = true;
    const socket = this.#socket!;
    socket.pause();
    // Pausing only the stream would let the system continue to fill its buffer.
    const { _handle: handle } = socket as unknown as { readonly _handle: { readonly fd: number; readStop(): number } };
    handle.readStop();
    return handle.fd;
  }

  /** Whether no more frames will be received. */
  get closed(): boolean {
    return this.#closed;
  }

  /** Address of the peer, for messages to the user. */
  get remote(): string {
    return `${this.#socket?.remoteAddress ?? "nowhere"}:${this.#socket?.remotePort ?? 0}`;
  }

  write({ type, flags, stream, sequence, tag, payload }: SocketFrame, handedOver?: () => void): void {
    const socket = this.#socket;
    if (socket === undefined || !socket.writable) return;
    const headerOnly = this.headerOnly && type === "data";
    const header = encodeHeader(
      {
        type,
        flags: headerOnly ? flags | frameFlags.headerOnly : flags,
        stream,
        sequence,
        tag,
        length: payload.byteLength,
      },
      payload,
      undefined,
      this.#checksum,
    );
    const bytes = headerBytes + payload.byteLength;
    this.outstanding += bytes;
    const done = (error?: Error | null): void => {
      this.outstanding -= bytes;
      if (error === undefined || error === null) handedOver?.();
    };
    if (payload.byteLength === 0) {
      socket.write(header, done);
      return;
    }
    socket.cork(); // One system call for header and payload.
    socket.write(header);
    socket.write(payload, done);
    socket.uncork();
  }

  /** Sends a goodbye, and closes the connection after pending writes are flushed. */
  bye(): void {
    if (this.#byeSent) return;
    this.#byeSent = true;
    this.write({ type: "bye", flags: 0, stream: 0, sequence: 0, tag: 0, payload: empty });
    this.#socket?.end();
  }

  /** Stops reading, flushes pending writes, then destroys the socket. */
  leave(): void {
    this.#closed = true;
    const socket = this.#socket;
    if (socket === undefined || socket.destroyed) return;
    if (this.#direct) socket.pause(); // The system must not read into memory that this rank no longer owns.
    socket.end();
    // Destroying a socket with unread bytes resets the connection, and the peer might lose the last sent bytes.
    const timer = setTimeout(() => socket.destroy(), farewellMilliseconds);
    timer.unref();
    socket.once("close", () => clearTimeout(timer));
  }

  destroy(): void {
    this.#closed = true;
    this.#socket?.destroy();
  }

  /**
   * Returns the header of the data frame whose payload is incomplete; undefined if no payload is incomplete. Call this
   * method after `destroy`.
   */
  abandon(): FrameHeader | undefined {
    const header = this.#reader.abandon();
    return header?.type === "data" ? header : undefined;
  }

  #limit(header: FrameHeader): number {
    if (header.type === "ping" || header.type === "acknowledge" || header.type === "bye") return 0;
    if (this.#receiver !== undefined) return this.#receiver.limit(header);
    return header.type === "data" ? 0 : stagingBytes;
  }

  #frame(header: FrameHeader, payload: Uint8Array): void {
    if (header.type === "bye") this.#byeReceived = true;
    else if (this.#receiver !== undefined) this.#receiver.frame(header, payload);
    else if (header.type === "ping" || header.type === "acknowledge") return;
    else if (this.#waiting.push({ header, payload }) > waitingFrames)
      throw new Error(`it sent ${waitingFrames} frames before the link was open`);
  }

  #read(take: () => void): void {
    if (this.#closed) return;
    this.heardAt = performance.now();
    this.#guard(take);
  }

  #guard(take: () => void): void {
    try {
      take();
    } catch (error) {
      this.#socket?.pause();
      this.broken = error instanceof WireError && error.code === "frame-truncated";
      this.#close(error as Error);
    }
  }

  #close(error: Error | undefined): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#receiver === undefined) this.#end = { error };
    else this.#receiver.closed(error);
  }
}

import type { Socket } from "node:net";
import type { Checksum } from "../wire/crc32c.ts";
import { encodeHeader, type FrameHeader, frameFlags, type FrameType, headerBytes } from "../wire/frame.ts";
import { RevokedPeerError } from "../security/errors.ts";
import { WireError } from "../wire/errors.ts";
import { FrameReader } from "../wire/frame-reader.ts";
import { farewellMilliseconds } from "../failure-detection/goodbye.ts";
import type { LinkReceiver } from "./link.ts";

/** Frames over one socket, with the link's own frames: hello, welcome and refuse before it is open, ping and bye. */
export interface SocketFrame extends Omit<FrameHeader, "length"> {
  readonly type: FrameType;
  readonly payload: Uint8Array;
}

export interface FrameSocketOptions {
  /** For payloads. */
  readonly checksum: Checksum;
  /**
   * The socket protects payloads itself (TLS), or the user trusts the network's own checks: sums of data cover headers
   * alone.
   */
  readonly headerOnly: boolean;
}

/** `onread` of a socket that is dialled: the system reads where these bytes are wanted. */
export interface ReadInto {
  readonly buffer: () => Uint8Array;
  readonly callback: (count: number) => boolean;
}

// Headers and what is small come through a buffer, and are copied; of 64 KiB, more made no difference
// (docs/experiments.md). The rest of a payload that has at least a quarter of it to come is read straight into its
// target.
const stagingBytes = 65_536;
const directBytes = 16_384;
// What a peer may send before the owner has opened the link: credit for each lane, and a report when it gives up.
const waitingFrames = 256;

const empty = new Uint8Array(0);

/**
 * Frames over one socket. Payload travels one way, from who accepted the socket to who dialled it: Node lets a dialled
 * socket alone read into memory of ours. Control frames travel both ways.
 *
 * No copy of a payload in JavaScript: a large one goes from the system into its target, and out of the sender's memory
 * into the system.
 */
export class FrameSocket {
  /** What the checksums of data that is sent cover. */
  headerOnly: boolean;
  /** When the peer was last heard. */
  heardAt: number = performance.now();
  /** Bytes given to the socket that the system has not taken. */
  outstanding = 0;
  readonly #checksum: Checksum;
  readonly #reader: FrameReader;
  /** Whether the connection itself broke, rather than what came over it being wrong. */
  broken = false;
  /** Whether the peer has ended it in good order, though without a goodbye. */
  finished = false;
  readonly #waiting: { readonly header: FrameHeader; readonly payload: Uint8Array }[] = [];
  #receiver: LinkReceiver | undefined;
  #socket: Socket | undefined;
  #direct = false;
  #saidBye = false;
  #heardBye = false;
  #closed = false;
  #end: { readonly error: Error | undefined } | undefined; // that nobody was told of yet

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

  /** What a dialled socket is to be made with. */
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

  /** Take over a socket that was dialled with `readInto`, or accepted. */
  attach(socket: Socket, how: "dialled" | "accepted"): void {
    this.#socket = socket;
    socket.setNoDelay(true);
    if (how === "accepted") socket.on("data", (chunk: Uint8Array) => this.#read(() => this.#reader.push(chunk)));
    else socket.resume();
    const fail = (error: Error): void => {
      // that one was ended, and is not to be made again
      this.broken ||= !this.#closed && !(error instanceof RevokedPeerError);
      this.#close(this.#heardBye ? undefined : error);
    };
    socket.on("error", fail);
    const ended = (): void => fail(new Error("its connection was closed without a goodbye"));
    socket.on("end", () => {
      this.#read(() => this.#reader.end());
      this.finished = !this.#closed;
      ended();
    });
    socket.on("close", ended);
  }

  /** Give what comes to `receiver`, beginning with what has come already. */
  open(receiver: LinkReceiver): void {
    this.#receiver = receiver;
    this.#guard(() => {
      for (const { header, payload } of this.#waiting.splice(0)) receiver.frame(header, payload);
    });
    const end = this.#end;
    this.#end = undefined;
    if (end !== undefined) receiver.closed(end.error);
  }

  /** Keep what comes, all but data, until the socket is opened again. */
  hold(): void {
    this.#receiver = undefined;
  }

  /**
   * Read nothing more: the rank's own thread reads and writes the socket from now on, by its file descriptor, which is
   * good until `destroy`. Call where the peer is known to send nothing yet.
   */
  handOver(): number {
    this.#closed = true;
    const socket = this.#socket!;
    socket.pause();
    // The stream's own pause lets the system go on filling its buffer.
    const { _handle: handle } = socket as unknown as { readonly _handle: { readonly fd: number; readStop(): number } };
    handle.readStop();
    return handle.fd;
  }

  /** Whether nothing more will come. */
  get closed(): boolean {
    return this.#closed;
  }

  /** The peer's address, for messages. */
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
    socket.cork(); // one call to the system for both
    socket.write(header);
    socket.write(payload, done);
    socket.uncork();
  }

  /** Say goodbye and end; what was written before goes first. */
  bye(): void {
    if (this.#saidBye) return;
    this.#saidBye = true;
    this.write({ type: "bye", flags: 0, stream: 0, sequence: 0, tag: 0, payload: empty });
    this.#socket?.end();
  }

  /** Take nothing more, but let what was written leave; then the socket is gone. */
  leave(): void {
    this.#closed = true;
    const socket = this.#socket;
    if (socket === undefined || socket.destroyed) return;
    if (this.#direct) socket.pause(); // the system must not read into memory that is no longer ours
    socket.end();
    // Destroyed now, with bytes unread, it would be reset, and the peer might lose our last words.
    const timer = setTimeout(() => socket.destroy(), farewellMilliseconds);
    timer.unref();
    socket.once("close", () => clearTimeout(timer));
  }

  destroy(): void {
    this.#closed = true;
    this.#socket?.destroy();
  }

  /** After `destroy`: the data frame whose payload was coming, if one was. */
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
    if (header.type === "bye") this.#heardBye = true;
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

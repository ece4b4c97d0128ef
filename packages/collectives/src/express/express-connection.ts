import type { ExpressEnd, WorldConnection } from "../control-block/world-connection.ts";
import { laneCount } from "../control-block/layout.ts";
import type { MessageMemory } from "../message-memory.ts";
import { crc32c } from "../wire/crc32c.ts";
import { WireError } from "../wire/errors.ts";
import { encodeHeader, type FrameHeader, frameFlags, headerBytes } from "../wire/frame.ts";
import { FrameReader } from "../wire/frame-reader.ts";

/**
 * Maximum number of bytes that a rank sends to each other rank for one express request. The rank's compute thread is
 * faster than the companion up to 256 KiB, but the compute thread cannot compute while it copies data.
 */
export const expressBytes = 65_536;
/**
 * Maximum number of incomplete requests per lane. A request is incomplete if this rank has sent its input, but has not
 * received the inputs of all peers.
 */
export const maxStarted = 16;
// A peer sends its part of a later request only after it has received this rank's part of earlier requests. So a peer
// is at most `maxStarted` requests ahead of this rank, and this rank is at most `maxStarted` requests ahead of the
// slowest peer.
const maxKept = 2 * maxStarted;

/** Non-blocking socket calls of the operating system. A call that would block throws EAGAIN. */
export interface ExpressRuntime {
  /**
   * Reads from a socket into `target`.
   *
   * @returns number of bytes read; 0 at the end of the stream.
   */
  read(fd: number, target: Uint8Array): number;
  /**
   * Writes bytes from index `begin` of `bytes` to a socket.
   *
   * @returns number of bytes written, at most `count`.
   */
  write(fd: number, bytes: Uint8Array, begin: number, count: number): number;
  /**
   * Whether the rank's compute thread has a dedicated core. If true, the thread polls for a short time before it
   * sleeps.
   */
  hasOwnCore(connection: WorldConnection): boolean;
}

/**
 * One peer's received message for a request, in message memory. The thread that removes the message from the queue must
 * free the memory.
 */
export interface Part {
  readonly tag: number;
  readonly bytes: Uint8Array;
}

const gone = new Set(["ECONNRESET", "EPIPE", "ETIMEDOUT", "ENOTCONN", "ECONNABORTED"]);
const empty = new Uint8Array(0);
const staging = new Uint8Array(65_536);

/** Whether a system call failed because it would block (EAGAIN). */
const wouldWait = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === "EAGAIN";

/**
 * Sends frames to one peer and receives frames from that peer over a socket, without blocking the calling thread. Bytes
 * that the operating system does not accept immediately are buffered. Received bytes stay in the operating system until
 * `look` reads them.
 *
 * Cost: two system calls per message and its response, 3 to 6 µs each, and a copy of the sent and received bytes.
 */
export class ExpressConnection {
  readonly peer: number;
  /** Whether the peer has closed the connection. All bytes that the peer sent before it closed have been received. */
  ended = false;
  readonly #fd: number;
  readonly #runtime: Pick<ExpressRuntime, "read" | "write">;
  readonly #headerOnly: boolean;
  readonly #reader: FrameReader;
  readonly #parts: readonly Part[][] = Array.from({ length: laneCount }, () => []);
  readonly #sequences: number[] = Array.from({ length: laneCount }, () => 0);
  #outgoing = new Uint8Array(2 * (headerBytes + expressBytes));
  /** Offset of the first byte in `#outgoing` that the system has not accepted yet. */
  #begin = 0;
  /** Offset after the last byte in `#outgoing`. */
  #end = 0;

  constructor(
    { peer, fd, headerOnly }: ExpressEnd,
    memory: MessageMemory,
    runtime: Pick<ExpressRuntime, "read" | "write">,
  ) {
    this.#runtime = runtime;
    this.peer = peer;
    this.#fd = fd;
    this.#headerOnly = headerOnly;
    this.#reader = new FrameReader({
      limit: ({ type, stream }) => (type === "data" && stream < laneCount ? expressBytes : 0),
      target: ({ length }) => memory.take(length),
      frame: (header, payload) => this.#storePart(header, payload),
    });
  }

  /** Whether the system has accepted all sent bytes. */
  get flushed(): boolean {
    return this.#begin === this.#end;
  }

  /** Sends a message; `bytes` may be changed after the call. */
  send(lane: number, tag: number, bytes: Uint8Array): void {
    const sequence = this.#sequences[lane]!;
    this.#sequences[lane] = (sequence + 1) >>> 0;
    const length = bytes.byteLength;
    const flags = frameFlags.last | (this.#headerOnly ? frameFlags.headerOnly : 0);
    this.#makeRoom(headerBytes + length);
    const target = this.#outgoing.subarray(this.#end);
    encodeHeader({ type: "data", flags, stream: lane, sequence, tag, length }, bytes, target, crc32c);
    target.set(bytes, headerBytes);
    this.#end += headerBytes + length;
    this.flush();
  }

  /** Writes as many pending bytes as the system accepts. */
  flush(): void {
    while (!this.flushed && !this.ended) {
      try {
        this.#begin += this.#runtime.write(this.#fd, this.#outgoing, this.#begin, this.#end - this.#begin);
      } catch (error) {
        if (wouldWait(error)) return;
        this.#lose(error);
      }
    }
    if (this.flushed) this.#begin = this.#end = 0;
  }

  /**
   * Reads all available bytes.
   *
   * @returns whether bytes were read.
   * @throws WireError if the peer sent a frame that the protocol does not allow.
   */
  look(): boolean {
    for (let came = false; !this.ended; came = true) {
      let count: number;
      try {
        count = this.#runtime.read(this.#fd, staging);
      } catch (error) {
        if (!wouldWait(error)) this.#lose(error);
        return came;
      }
      if (count === 0) this.ended = true;
      else this.#reader.push(staging.subarray(0, count));
      if (count < staging.byteLength) return true;
    }
    return false;
  }

  /** Returns the oldest received message in the queue of a lane, or undefined if the queue is empty. */
  first(lane: number): Part | undefined {
    return this.#parts[lane]![0];
  }

  take(lane: number): Part {
    return this.#parts[lane]!.shift()!;
  }

  /** Marks the connection as ended. The companion also detects the end, and finds the rank that caused the failure. */
  #lose(error: unknown): void {
    if (!gone.has((error as NodeJS.ErrnoException).code ?? "")) throw error;
    this.ended = true;
  }

  #storePart({ type, stream, tag }: FrameHeader, payload: Uint8Array): void {
    const parts = this.#parts[stream];
    if (type !== "data" || parts === undefined)
      throw new WireError(
        "frame-header",
        `a ${type} frame of lane ${stream} came on a connection that carries only data of lanes 0 to ${laneCount - 1}`,
      );
    if (parts.push({ tag, bytes: payload.byteLength === 0 ? empty : payload }) > maxKept)
      throw new WireError(
        "frame-length",
        `a peer sent ${parts.length} messages of lane ${stream} that no request has received, ${maxKept} are allowed`,
      );
  }

  #makeRoom(bytes: number): void {
    if (this.#outgoing.byteLength - this.#end >= bytes) return;
    const left = this.#outgoing.subarray(this.#begin, this.#end);
    const room = left.byteLength + bytes;
    const larger = new Uint8Array(Math.max(this.#outgoing.byteLength, 2 * room));
    larger.set(left);
    this.#outgoing = larger;
    this.#begin = 0;
    this.#end = left.byteLength;
  }
}

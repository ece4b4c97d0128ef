import type { ExpressEnd, WorldConnection } from "../control-block/world-connection.ts";
import { laneCount } from "../control-block/layout.ts";
import type { MessageMemory } from "../message-memory.ts";
import { crc32c } from "../wire/crc32c.ts";
import { WireError } from "../wire/errors.ts";
import { encodeHeader, type FrameHeader, frameFlags, headerBytes } from "../wire/frame.ts";
import { FrameReader } from "../wire/frame-reader.ts";

/**
 * The most bytes that a rank sends to each other for one request. Up to a quarter of a MiB the rank's thread is faster
 * than its companion even so; but what it copies, it copies instead of computing.
 */
export const expressBytes = 65_536;
/** Requests of one lane that a rank has sent its part of, and has not all parts of. */
export const mostBegun = 16;
// A peer that has all parts of a request has ours: it is at most as far ahead of us as we are of the slowest.
const mostKept = 2 * mostBegun;

/** What the system has for sockets that do not block: calls throw EAGAIN where they would have to wait. */
export interface ExpressMeans {
  /** @returns how many bytes came; 0 at the end. */
  read(fd: number, target: Uint8Array): number;
  /** @returns how many of `count` bytes from `begin` the system has taken. */
  write(fd: number, bytes: Uint8Array, begin: number, count: number): number;
  /** No other thread wants the core of this rank's: it may look for a while before it sleeps. */
  hasOwnCore(connection: WorldConnection): boolean;
}

/** What came for a request, in message memory: who takes it gives it back. */
export interface Part {
  readonly tag: number;
  readonly bytes: Uint8Array;
}

const gone = new Set(["ECONNRESET", "EPIPE", "ETIMEDOUT", "ENOTCONN", "ECONNABORTED"]);
const empty = new Uint8Array(0);
const staging = new Uint8Array(65_536);

/** What the system says to a call that would have to wait. */
const wouldWait = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === "EAGAIN";

/**
 * Frames to and from one peer over a socket that the calling thread reads and writes itself, and that never blocks it:
 * what the system does not take at once is kept, and what has come waits in the system until somebody looks.
 *
 * Cost: two calls to the system per message and its answer, 3 to 6 µs each, and a copy of what is sent and of what
 * comes.
 */
export class ExpressConnection {
  readonly peer: number;
  /** Whether the peer has ended it; what it sent before has come. */
  ended = false;
  readonly #fd: number;
  readonly #means: Pick<ExpressMeans, "read" | "write">;
  readonly #headerOnly: boolean;
  readonly #reader: FrameReader;
  readonly #parts: readonly Part[][] = Array.from({ length: laneCount }, () => []);
  readonly #sequences: number[] = Array.from({ length: laneCount }, () => 0);
  #outgoing = new Uint8Array(2 * (headerBytes + expressBytes));
  /** What of it the system has not taken. */
  #begin = 0;
  #end = 0;

  constructor(
    { peer, fd, headerOnly }: ExpressEnd,
    memory: MessageMemory,
    means: Pick<ExpressMeans, "read" | "write">,
  ) {
    this.#means = means;
    this.peer = peer;
    this.#fd = fd;
    this.#headerOnly = headerOnly;
    this.#reader = new FrameReader({
      limit: ({ type, stream }) => (type === "data" && stream < laneCount ? expressBytes : 0),
      target: ({ length }) => memory.take(length),
      frame: (header, payload) => this.#keep(header, payload),
    });
  }

  /** Whether the system has all that was sent. */
  get flushed(): boolean {
    return this.#begin === this.#end;
  }

  /** Send a message; `bytes` may change again at once. */
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

  /** Hand the system what it takes of what was sent. */
  flush(): void {
    while (!this.flushed && !this.ended) {
      try {
        this.#begin += this.#means.write(this.#fd, this.#outgoing, this.#begin, this.#end - this.#begin);
      } catch (error) {
        if (wouldWait(error)) return;
        this.#lose(error);
      }
    }
    if (this.flushed) this.#begin = this.#end = 0;
  }

  /**
   * Take what has come.
   *
   * @returns whether anything has.
   * @throws WireError when it is not what a peer may send.
   */
  look(): boolean {
    for (let came = false; !this.ended; came = true) {
      let count: number;
      try {
        count = this.#means.read(this.#fd, staging);
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

  /** The oldest message of a lane that nobody has taken. */
  first(lane: number): Part | undefined {
    return this.#parts[lane]![0];
  }

  take(lane: number): Part {
    return this.#parts[lane]!.shift()!;
  }

  /** The companion notices too, and finds out which rank the world failed of. */
  #lose(error: unknown): void {
    if (!gone.has((error as NodeJS.ErrnoException).code ?? "")) throw error;
    this.ended = true;
  }

  #keep({ type, stream, tag }: FrameHeader, payload: Uint8Array): void {
    const parts = this.#parts[stream];
    if (type !== "data" || parts === undefined)
      throw new WireError("frame-header", `a ${type} frame of lane ${stream} came where only messages of lanes come`);
    if (parts.push({ tag, bytes: payload.byteLength === 0 ? empty : payload }) > mostKept)
      throw new WireError(
        "frame-length",
        `a peer sent ${parts.length} messages of lane ${stream} that nobody has asked for, ${mostKept} are allowed`,
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

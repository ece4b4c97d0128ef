import { InvariantError } from "@skein/tensor-core";
import { type Checksum, crc32c } from "./crc32c.ts";
import { WireError } from "./errors.ts";
import {
  decodeHeader,
  type FrameHeader,
  frameFlags,
  headerBytes,
  headerChecksum,
  type ReceivedHeader,
} from "./frame.ts";

/** Receiver of the frames of a link. */
export interface FrameSink {
  /**
   * Returns the maximum payload length in bytes for a frame of this type, stream and tag. Called before the other
   * methods; 0 refuses a payload.
   */
  limit(header: FrameHeader): number;
  /**
   * Returns the memory for the payload: exactly `header.length` bytes. Not called for an empty payload. The header is
   * not verified yet, so return only memory whose contents may be overwritten.
   */
  target(header: FrameHeader): Uint8Array;
  /** Called with each frame whose checksum is valid. An exception ends the reader. */
  frame(header: FrameHeader, payload: Uint8Array): void;
}

export interface FrameReaderOptions {
  /** Checksum for payloads. Default: `crc32c`. `crc32cOf` creates a faster function. */
  readonly checksum?: Checksum;
  /**
   * Whether to check sequence numbers. False if the sink checks the sequence numbers, for example because one stream
   * arrives over several sockets. Default: true.
   */
  readonly inSequence?: boolean;
}

/** Maximum number of streams of one link, which limits the reader's table of sequence numbers. */
export const maxStreams = 64;

const nothing = new Uint8Array(0);

/**
 * Splits the bytes of a link into frames, for any chunking, and checks each frame: header, length, checksum, sequence.
 *
 * Buffers 32 bytes. Payloads are written directly to the sink's memory, and their checksum is computed as they arrive.
 * After an error every call throws that error again.
 * @example
 * const reader = new FrameReader(sink, { checksum: crc32cOf() });
 * socket.on("data", (chunk) => reader.push(chunk)).on("end", () => reader.end());
 */
export class FrameReader {
  readonly #sink: FrameSink;
  readonly #checksum: Checksum;
  readonly #inSequence: boolean;
  readonly #next = new Map<number, number>();
  readonly #headerSpace = new Uint8Array(headerBytes);
  #header: ReceivedHeader | undefined; // Header of the frame whose payload is being received.
  #target: Uint8Array = this.#headerSpace; // Memory for the bytes being received.
  #filled = 0;
  #sum = 0;
  #failure: { readonly error: unknown } | undefined;

  constructor(sink: FrameSink, { checksum = crc32c, inSequence = true }: FrameReaderOptions = {}) {
    this.#sink = sink;
    this.#checksum = checksum;
    this.#inSequence = inSequence;
  }

  /**
   * Returns the memory for the next bytes, never empty. Read bytes into this memory and report their number to
   * `filled`. Avoids the copy of `push`.
   */
  space(): Uint8Array {
    this.#refuseAfterFailure();
    return this.#filled === 0 ? this.#target : this.#target.subarray(this.#filled);
  }

  /**
   * Records that `count` bytes were written at the beginning of `space()`.
   *
   * @throws WireError if the protocol does not allow the written bytes.
   */
  filled(count: number): void {
    this.#refuseAfterFailure();
    try {
      this.#advance(count);
    } catch (error) {
      this.#failure = { error };
      throw error;
    }
  }

  /**
   * Processes the next bytes of the link, in chunks of any size.
   *
   * @throws WireError if the protocol does not allow the bytes.
   */
  push(chunk: Uint8Array): void {
    for (let taken = 0; taken < chunk.byteLength; ) {
      const space = this.space();
      const count = Math.min(space.byteLength, chunk.byteLength - taken);
      space.set(chunk.subarray(taken, taken + count));
      this.filled(count);
      taken += count;
    }
  }

  /**
   * Records that the link has ended.
   *
   * @throws WireError if the link ended in the middle of a frame.
   */
  end(): void {
    this.#refuseAfterFailure();
    if (this.#header === undefined && this.#filled === 0) return;
    const what = this.#header === undefined ? "a header" : `the payload of a ${this.#header.type} frame`;
    const error = new WireError(
      "frame-truncated",
      `the link ended ${this.#filled} bytes into ${what} of ${this.#target.byteLength}; the peer died, or the connection was cut`,
    );
    this.#failure = { error };
    throw error;
  }

  /** Stops reading. Returns the header of the frame whose payload is incomplete, or undefined if there is none. */
  abandon(): FrameHeader | undefined {
    this.#failure ??= { error: new InvariantError("a reader was used after it was abandoned") };
    const header = this.#header;
    this.#header = undefined;
    return header;
  }

  #refuseAfterFailure(): void {
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  #advance(count: number): void {
    const begin = this.#filled;
    this.#filled += count;
    const header = this.#header;
    if (header !== undefined && (header.flags & frameFlags.headerOnly) === 0)
      this.#sum = this.#checksum(this.#target.subarray(begin, this.#filled), this.#sum);
    if (this.#filled < this.#target.byteLength) return;
    if (header !== undefined) this.#deliver(header, this.#target);
    else this.#open(decodeHeader(this.#headerSpace));
  }

  #open(header: ReceivedHeader): void {
    const limit = this.#sink.limit(header);
    if (header.length > limit)
      throw new WireError(
        "frame-length",
        `a ${header.type} frame announces ${header.length} bytes, at most ${limit} are allowed here; the stream is damaged, or the peer is hostile`,
      );
    this.#sum = headerChecksum(this.#headerSpace);
    if (header.length === 0) return this.#deliver(header, nothing);
    // Even if the payload has no checksum, a payload with a wrong header must not reach the sink's memory.
    if ((header.flags & frameFlags.headerOnly) !== 0) this.#checkSum(header);
    const target = this.#sink.target(header);
    if (target.byteLength !== header.length)
      throw new InvariantError(`a sink gave ${target.byteLength} bytes for a payload of ${header.length}`);
    this.#header = header;
    this.#target = target;
    this.#filled = 0;
  }

  #deliver(header: ReceivedHeader, payload: Uint8Array): void {
    this.#checkSum(header);
    if (this.#inSequence) this.#checkSequence(header);
    this.#header = undefined;
    this.#target = this.#headerSpace;
    this.#filled = 0;
    this.#sink.frame(header, payload);
  }

  #checkSum({ type, checksum }: ReceivedHeader): void {
    if (checksum !== this.#sum)
      throw new WireError(
        "frame-checksum",
        `a ${type} frame carries checksum ${checksum}, its bytes have ${this.#sum}; they were damaged in transit, so the link cannot be trusted`,
      );
  }

  #checkSequence({ type, stream, sequence }: ReceivedHeader): void {
    if (stream >= maxStreams)
      throw new WireError(
        "frame-header",
        `a ${type} frame has stream ${stream}, but a link has at most ${maxStreams} streams; the connection is damaged`,
      );
    const expected = this.#next.get(stream) ?? 0;
    if (sequence !== expected)
      throw new WireError(
        "frame-sequence",
        `a ${type} frame of stream ${stream} has sequence ${sequence}, ${expected} was expected; frames were lost or repeated, so the link cannot be trusted`,
      );
    this.#next.set(stream, (sequence + 1) >>> 0);
  }
}

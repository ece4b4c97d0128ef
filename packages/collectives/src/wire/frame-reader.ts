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

/** Who takes the frames of a link. */
export interface FrameSink {
  /**
   * The most bytes that a frame of this type, stream and tag may announce. Asked before anything else; 0 refuses a
   * payload.
   */
  limit(header: FrameHeader): number;
  /**
   * Where the payload is to land: exactly `header.length` bytes. Not asked for an empty payload. The header is not
   * verified yet, so hand out only memory whose content nobody needs.
   */
  target(header: FrameHeader): Uint8Array;
  /** Take a frame whose checksum is right. What this throws ends the reader. */
  frame(header: FrameHeader, payload: Uint8Array): void;
}

export interface FrameReaderOptions {
  /** For payloads. Default: `crc32c`; `crc32cOf` makes a faster one. */
  readonly checksum?: Checksum;
  /** False where the sink checks `sequence` itself, as where one stream comes over several sockets. Default: true. */
  readonly inSequence?: boolean;
}

/** Streams that one link may carry; a bound for the reader's memory of sequences. */
export const maxStreams = 64;

const nothing = new Uint8Array(0);

/**
 * Cuts what one link brings into frames, however it is cut on the way, and checks each: header, length, checksum,
 * sequence.
 *
 * Holds 32 bytes; payloads go where the sink says, and are summed while they come. After an error every call throws
 * that error again.
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
  #header: ReceivedHeader | undefined; // of the frame whose payload comes
  #landing: Uint8Array = this.#headerSpace; // what is being filled
  #filled = 0;
  #sum = 0;
  #failure: { readonly error: unknown } | undefined;

  constructor(sink: FrameSink, { checksum = crc32c, inSequence = true }: FrameReaderOptions = {}) {
    this.#sink = sink;
    this.#checksum = checksum;
    this.#inSequence = inSequence;
  }

  /**
   * Where the next bytes are to go, never empty: read into it, as much as comes, and say so by `filled`. Saves the copy
   * of `push`.
   */
  space(): Uint8Array {
    this.#refuseAfterFailure();
    return this.#filled === 0 ? this.#landing : this.#landing.subarray(this.#filled);
  }

  /**
   * `count` bytes were written at the beginning of `space()`.
   * @throws WireError when they are not what a peer may send.
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
   * Take the next bytes of the link, cut anywhere.
   * @throws WireError when they are not what a peer may send.
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
   * The link has ended.
   * @throws WireError when it did so in the middle of a frame.
   */
  end(): void {
    this.#refuseAfterFailure();
    if (this.#header === undefined && this.#filled === 0) return;
    const what = this.#header === undefined ? "a header" : `the payload of a ${this.#header.type} frame`;
    const error = new WireError(
      "frame-truncated",
      `the link ended ${this.#filled} bytes into ${what} of ${this.#landing.byteLength}; the peer died, or the connection was cut`,
    );
    this.#failure = { error };
    throw error;
  }

  /** Read nothing more. Returns the header of the frame whose payload was coming, if it was. */
  abandon(): FrameHeader | undefined {
    this.#failure ??= { error: new InvariantError("a reader was used after it had been given up") };
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
      this.#sum = this.#checksum(this.#landing.subarray(begin, this.#filled), this.#sum);
    if (this.#filled < this.#landing.byteLength) return;
    if (header !== undefined) this.#deliver(header, this.#landing);
    else this.#open(decodeHeader(this.#headerSpace));
  }

  #open(header: ReceivedHeader): void {
    const limit = this.#sink.limit(header);
    if (header.length > limit)
      throw new WireError(
        "frame-length",
        `a ${header.type} frame announces ${header.length} bytes, at most ${limit} are allowed here; the stream is damaged, or the peer hostile`,
      );
    this.#sum = headerChecksum(this.#headerSpace);
    if (header.length === 0) return this.#deliver(header, nothing);
    // A payload that is not summed is still not let near the sink's memory by a header that is wrong.
    if ((header.flags & frameFlags.headerOnly) !== 0) this.#checkSum(header);
    const target = this.#sink.target(header);
    if (target.byteLength !== header.length)
      throw new InvariantError(`a sink gave ${target.byteLength} bytes for a payload of ${header.length}`);
    this.#header = header;
    this.#landing = target;
    this.#filled = 0;
  }

  #deliver(header: ReceivedHeader, payload: Uint8Array): void {
    this.#checkSum(header);
    if (this.#inSequence) this.#checkSequence(header);
    this.#header = undefined;
    this.#landing = this.#headerSpace;
    this.#filled = 0;
    this.#sink.frame(header, payload);
  }

  #checkSum({ type, checksum }: ReceivedHeader): void {
    if (checksum !== this.#sum)
      throw new WireError(
        "frame-checksum",
        `a ${type} frame carries checksum ${checksum}, its bytes have ${this.#sum}; they were damaged on the way, so the link cannot be trusted`,
      );
  }

  #checkSequence({ type, stream, sequence }: ReceivedHeader): void {
    if (stream >= maxStreams)
      throw new WireError(
        "frame-header",
        `a ${type} frame is of stream ${stream}, but a link carries at most ${maxStreams}; the stream is damaged`,
      );
    const expected = this.#next.get(stream) ?? 0;
    if (sequence !== expected)
      throw new WireError(
        "frame-sequence",
        `a ${type} frame of stream ${stream} has sequence ${sequence}, ${expected} was due; frames were lost or came twice, so the link cannot be trusted`,
      );
    this.#next.set(stream, (sequence + 1) >>> 0);
  }
}

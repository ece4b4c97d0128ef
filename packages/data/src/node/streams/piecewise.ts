import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, type Gunzip } from "node:zlib";
import { type FileContent, foreignContent } from "@skein/tensor-core/backend";
import { DataError } from "../../errors.ts";
import { joinBytes } from "../../join-bytes.ts";
import { openSource, pathOf } from "../byte-source.ts";
import { cutOff, type TarBytes } from "../tar-entries.ts";

const cure = "check that the file still exists and is complete";

/** Size of one read in bytes. On a web server each read costs one request. */
const pieceBytes = 2 ** 22;

export const isCompressed = (location: string): boolean => /\.(gz|tgz)$/i.test(pathOf(location));

async function* storedPieces(
  location: string,
  from: number,
  holds: FileContent,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void> {
  const source = await openSource(location, cure, holds);
  try {
    for (let at = from; at < source.sizeBytes; at += pieceBytes)
      yield await source.read(at, Math.min(source.sizeBytes, at + pieceBytes));
  } finally {
    source.close();
  }
}

/** Decompressors in use on this thread. */
const decompressors = new Set<Gunzip>();
let isClosed = false;

/**
 * Stops decompression on this thread. Must be called before another thread terminates this thread: Node.js 24 ends the
 * process if a thread is terminated while it starts to decompress a file.
 */
export const closeDecompressors = (): void => {
  isClosed = true;
  for (const decompressor of decompressors) decompressor.destroy();
};

async function* decompressedPieces(location: string): AsyncGenerator<Uint8Array, void> {
  if (isClosed) throw new DataError(`${pathOf(location)} was closed`);
  const gunzip = createGunzip();
  decompressors.add(gunzip);
  // The reader of `gunzip` receives errors of the pipeline.
  const pumped = pipeline(Readable.from(storedPieces(location, 0, "gzip")), gunzip);
  pumped.catch(() => undefined);
  try {
    for await (const piece of gunzip) yield piece as Uint8Array;
  } catch (cause) {
    if (cause instanceof DataError) throw cause;
    throw new DataError(
      `${pathOf(location)} cannot be read as gzip (${(cause as Error).message}); copy the file again`,
      {
        cause,
      },
    );
  } finally {
    decompressors.delete(gunzip);
  }
}

/**
 * Yields the content of a local or remote file from an offset. `.gz` files are decompressed from their beginning. Each
 * chunk has its own memory.
 *
 * @param from Byte offset in the decompressed content.
 * @param holds Expected content, after decompression.
 * @throws DataError if the file cannot be read, is damaged, or changes while it is read.
 */
export async function* piecesOf(location: string, from: number, holds: FileContent): AsyncGenerator<Uint8Array, void> {
  if (!isCompressed(location)) {
    yield* storedPieces(location, from, holds);
    return;
  }
  let at = 0;
  for await (const piece of decompressedPieces(location)) {
    const foreign = at === 0 ? foreignContent(piece, holds) : undefined;
    if (foreign !== undefined) throw new DataError(`${pathOf(location)}: its decompressed content ${foreign}`);
    if (at + piece.length > from) yield piece.subarray(Math.max(0, from - at));
    at += piece.length;
  }
}

/** Forward-only access to the content of a file. Bytes before the last requested offset are dropped. */
export class PiecewiseBytes implements TarBytes {
  readonly name: string;
  private readonly pieces: AsyncGenerator<Uint8Array, void>;
  private buffer: Uint8Array = new Uint8Array(0);
  private first: number;
  private isOver = false;

  constructor(location: string, from: number) {
    this.name = pathOf(location);
    this.pieces = piecesOf(location, from, "tar");
    this.first = from;
  }

  async hasMore(begin: number): Promise<boolean> {
    await this.fill(begin, 1);
    return begin < this.end;
  }

  require(end: number): void {
    if (this.isOver && end > this.end) throw cutOff(this.name, this.end);
  }

  async at(begin: number, count: number): Promise<Uint8Array> {
    await this.fill(begin, count);
    this.require(begin + count);
    return this.buffer.subarray(begin - this.first, begin - this.first + count);
  }

  async close(): Promise<void> {
    await this.pieces.return();
  }

  private get end(): number {
    return this.first + this.buffer.length;
  }

  /** Fills the buffer with `count` bytes from offset `begin`, or with fewer bytes at the end of the file. */
  private async fill(begin: number, count: number): Promise<void> {
    this.forget(begin);
    const further: Uint8Array[] = [];
    let end = this.end;
    while (!this.isOver && end < begin + count) {
      const { value } = await this.pieces.next();
      if (value === undefined) this.isOver = true;
      else {
        end += value.length;
        // skipped bytes are dropped
        if (end <= begin) [this.buffer, this.first] = [new Uint8Array(0), end];
        else further.push(value);
      }
    }
    if (further.length > 0) this.buffer = joinBytes(this.buffer, ...further);
    this.forget(begin);
  }

  private forget(begin: number): void {
    const passed = Math.min(begin - this.first, this.buffer.length);
    if (passed <= 0) return;
    this.buffer = this.buffer.subarray(passed);
    this.first += passed;
  }
}

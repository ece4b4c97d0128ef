import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGunzip, type Gunzip } from "node:zlib";
import { type FileContent, foreignContent } from "@skein/tensor-core/backend";
import { DataError } from "../../errors.ts";
import { joinBytes } from "../../join-bytes.ts";
import { openSource, pathOf } from "../byte-source.ts";
import { cutOff, type TarBytes } from "../tar-entries.ts";

const cure = "see that it is still there, and whole";

/** Of one read. A web server takes a request for each. */
const pieceBytes = 2 ** 22;

export const isCompressed = (place: string): boolean => /\.(gz|tgz)$/i.test(pathOf(place));

async function* storedPieces(
  place: string,
  from: number,
  holds: FileContent,
): AsyncGenerator<Uint8Array<ArrayBuffer>, void> {
  const source = await openSource(place, cure, holds);
  try {
    for (let at = from; at < source.sizeBytes; at += pieceBytes)
      yield await source.read(at, Math.min(source.sizeBytes, at + pieceBytes));
  } finally {
    source.close();
  }
}

/** What unpacks files in this thread at the moment. */
const unpackers = new Set<Gunzip>();
let isOver = false;

/**
 * Unpack nothing more in this thread. To be called before it is ended from outside: Node.js 24 ends the whole process
 * with a thread that is ended just as it begins to unpack a file.
 */
export const closeUnpackers = (): void => {
  isOver = true;
  for (const unpacker of unpackers) unpacker.destroy();
};

async function* unpackedPieces(place: string): AsyncGenerator<Uint8Array, void> {
  if (isOver) throw new DataError(`${pathOf(place)} is not read any more`);
  const gunzip = createGunzip();
  unpackers.add(gunzip);
  // Whatever ends it reaches who reads from gunzip.
  const pumped = pipeline(Readable.from(storedPieces(place, 0, "gzip")), gunzip);
  pumped.catch(() => undefined);
  try {
    for await (const piece of gunzip) yield piece as Uint8Array;
  } catch (cause) {
    if (cause instanceof DataError) throw cause;
    throw new DataError(`${pathOf(place)} is no gzip that can be read (${(cause as Error).message}); copy it again`, {
      cause,
    });
  } finally {
    unpackers.delete(gunzip);
  }
}

/**
 * What a file holds from a byte on, here or on a web server; of one that is compressed (.gz), what is in it. Each piece
 * has memory of its own.
 *
 * @param holds what the file must hold, unpacked.
 * Cost: of one that is compressed all is unpacked that comes before.
 * @throws DataError where it cannot be read, is damaged, or changes meanwhile.
 */
export async function* piecesOf(place: string, from: number, holds: FileContent): AsyncGenerator<Uint8Array, void> {
  if (!isCompressed(place)) {
    yield* storedPieces(place, from, holds);
    return;
  }
  let at = 0;
  for await (const piece of unpackedPieces(place)) {
    const foreign = at === 0 ? foreignContent(piece, holds) : undefined;
    if (foreign !== undefined) throw new DataError(`${pathOf(place)}: what is packed in it ${foreign}`);
    if (at + piece.length > from) yield piece.subarray(Math.max(0, from - at));
    at += piece.length;
  }
}

/** The same to be read by places, forwards: what lies before the last one is forgotten. */
export class PiecewiseBytes implements TarBytes {
  readonly name: string;
  private readonly pieces: AsyncGenerator<Uint8Array, void>;
  private held: Uint8Array = new Uint8Array(0);
  private first: number;
  private isOver = false;

  constructor(place: string, from: number) {
    this.name = pathOf(place);
    this.pieces = piecesOf(place, from, "tar");
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
    return this.held.subarray(begin - this.first, begin - this.first + count);
  }

  async close(): Promise<void> {
    await this.pieces.return();
  }

  private get end(): number {
    return this.first + this.held.length;
  }

  /** Hold bytes from `begin` on, so many where there are. */
  private async fill(begin: number, count: number): Promise<void> {
    this.forget(begin);
    const further: Uint8Array[] = [];
    let end = this.end;
    while (!this.isOver && end < begin + count) {
      const { value } = await this.pieces.next();
      if (value === undefined) this.isOver = true;
      else {
        end += value.length;
        // what is passed over is not kept
        if (end <= begin) [this.held, this.first] = [new Uint8Array(0), end];
        else further.push(value);
      }
    }
    if (further.length > 0) this.held = joinBytes(this.held, ...further);
    this.forget(begin);
  }

  private forget(begin: number): void {
    const passed = Math.min(begin - this.first, this.held.length);
    if (passed <= 0) return;
    this.held = this.held.subarray(passed);
    this.first += passed;
  }
}

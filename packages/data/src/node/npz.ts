import type { Readable } from "node:stream";
import { crc32 } from "node:zlib";
import type { Entry, ZipFile } from "yauzl";
import { DataError } from "../errors.ts";
import { openFile } from "./file-pieces.ts";
import type { NpySource } from "./read-npy.ts";

const firstLine = (cause: unknown): string => (cause as Error).message.split("\n")[0]!;

const damaged = (name: string, cause: unknown): DataError =>
  new DataError(`${name} cannot be unpacked (${firstLine(cause)}); write it again with numpy.savez`, { cause });

/** What an entry holds, unpacked. @throws DataError for one that differs from what was packed. */
async function* piecesOf(zip: ZipFile, entry: Entry, name: string): AsyncGenerator<Uint8Array, void> {
  let sum = 0;
  let stream: Readable;
  try {
    stream = await zip.openReadStreamPromise(entry);
  } catch (cause) {
    throw damaged(name, cause);
  }
  try {
    for await (const piece of stream as AsyncIterable<Buffer>) {
      sum = crc32(piece, sum);
      yield piece;
    }
  } catch (cause) {
    throw damaged(name, cause);
  }
  if (sum !== entry.crc32)
    throw damaged(name, new Error(`its check sum is ${sum.toString(16)}, not ${entry.crc32.toString(16)}`));
}

/** Arrays of an `.npz` file by their names, none of them read yet. */
export interface Npz {
  readonly names: readonly string[];
  source(name: string): NpySource;
  close(): void;
}

/**
 * Open what `numpy.savez` or `numpy.savez_compressed` has written: a zip archive, of 64 bits too, of `.npy` files.
 *
 * @throws DataError for what is none.
 */
export const openNpz = async (path: string): Promise<Npz> => {
  openFile(path, "name an .npz file", "npz").close();
  // CommonJS, which asks for Node's modules when it is loaded: bundled servers of ES modules cannot at their start.
  const { openPromise } = await import("yauzl");
  let zip: ZipFile;
  try {
    zip = await openPromise(path, { autoClose: false });
  } catch (cause) {
    throw damaged(path, cause);
  }
  const entries = new Map<string, Entry>();
  try {
    for await (const entry of zip.eachEntry())
      if (entry.fileName.endsWith(".npy")) {
        const name = entry.fileName.slice(0, -".npy".length);
        if (entries.has(name)) throw new Error(`it holds two arrays ${name}`);
        entries.set(name, entry);
      }
  } catch (cause) {
    zip.close();
    throw damaged(path, cause);
  }
  return {
    names: [...entries.keys()],
    source: (array) => {
      const entry = entries.get(array)!;
      const name = `${path}: ${array}`;
      return { name, sizeBytes: entry.uncompressedSize, pieces: piecesOf(zip, entry, name) };
    },
    close: () => zip.close(),
  };
};

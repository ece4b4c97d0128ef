import type { Readable } from "node:stream";
import { crc32 } from "node:zlib";
import type { Entry, ZipFile } from "yauzl";
import { DataError } from "../errors.ts";
import { openFile } from "./file-pieces.ts";
import type { NpySource } from "./read-npy.ts";

const firstLine = (cause: unknown): string => (cause as Error).message.split("\n")[0]!;

const damaged = (name: string, cause: unknown): DataError =>
  new DataError(`${name} cannot be unpacked (${firstLine(cause)}); write it again with numpy.savez`, { cause });

/** How entries may be packed, by the codes of the format. */
const methods: Readonly<Record<number, string>> = {
  9: "Deflate64",
  12: "bzip2",
  14: "LZMA",
  93: "Zstandard",
  95: "xz",
};
const [isStored, isDeflated] = [0, 8];

/** What an entry holds, unpacked. @throws DataError for one that differs from what was packed. */
async function* piecesOf(zip: ZipFile, entry: Entry, name: string): AsyncGenerator<Uint8Array, void> {
  const { compressionMethod: method } = entry;
  if (method !== isStored && method !== isDeflated)
    throw new DataError(
      `${name} is packed by ${methods[method] ?? `method ${method}`}, but only stored and deflated arrays are read; write it again with numpy.savez_compressed`,
    );
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
    for await (const entry of zip.eachEntry()) {
      const { fileName } = entry;
      if (fileName.endsWith("/")) continue;
      // NumPy itself takes arrays without the ending
      const name = fileName.endsWith(".npy") ? fileName.slice(0, -".npy".length) : fileName;
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

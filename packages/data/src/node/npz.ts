import type { Readable } from "node:stream";
import { crc32 } from "node:zlib";
import type { Entry, ZipFile } from "yauzl";
import { DataError } from "../errors.ts";
import { openFile } from "./file-pieces.ts";
import type { NpySource } from "./read-npy.ts";

const firstLine = (cause: unknown): string => (cause as Error).message.split("\n")[0]!;

const damaged = (name: string, cause: unknown): DataError =>
  new DataError(`${name} cannot be decompressed (${firstLine(cause)}); write it again with numpy.savez`, { cause });

/** Names of unsupported compression methods, by code in the zip format. */
const methods: Readonly<Record<number, string>> = {
  9: "Deflate64",
  12: "bzip2",
  14: "LZMA",
  93: "Zstandard",
  95: "xz",
};
const [isStored, isDeflated] = [0, 8];

/** Yields the decompressed content of a zip entry. @throws DataError if the content does not match its checksum. */
async function* piecesOf(zip: ZipFile, entry: Entry, name: string): AsyncGenerator<Uint8Array, void> {
  const { compressionMethod: method } = entry;
  if (method !== isStored && method !== isDeflated)
    throw new DataError(
      `${name} is compressed by ${methods[method] ?? `method ${method}`}, but only stored and deflated arrays are supported; write it again with numpy.savez_compressed`,
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
    throw damaged(name, new Error(`its checksum is ${sum.toString(16)}, not ${entry.crc32.toString(16)}`));
}

/** Arrays of an `.npz` file, by name. Arrays are read on demand. */
export interface Npz {
  readonly names: readonly string[];
  source(name: string): NpySource;
  close(): void;
}

/**
 * Opens a file written by `numpy.savez` or `numpy.savez_compressed`: a zip archive of `.npy` files, including zip64.
 *
 * @throws DataError if the file is not such an archive.
 */
export const openNpz = async (path: string): Promise<Npz> => {
  openFile(path, "give an .npz file", "npz").close();
  // Imported dynamically: the CommonJS package requires Node's modules when it is loaded, which servers bundled as ES
  // modules cannot do at startup.
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
      // NumPy also accepts arrays without the extension
      const name = fileName.endsWith(".npy") ? fileName.slice(0, -".npy".length) : fileName;
      if (entries.has(name)) throw new Error(`it contains two arrays named ${name}`);
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

import { DataError } from "../errors.ts";
import { createHash } from "node:crypto";
import { bytesOfToken, type FileTokens } from "../file-windows.ts";
import { isNpy, parseNpyHeader, requireWholeNpy } from "../npy.ts";
import { openFile, type OpenFile } from "./file-pieces.ts";
import { requireMemory } from "./require-memory.ts";

/** Layout of a file of tokens, which are consecutive little-endian integers. */
export interface TokenFileOptions {
  readonly dtype: "u16" | "u32";
  /** Byte offset of the first token. */
  readonly headerBytes: number;
  /** Exclusive upper bound of token ids. Default: largest token id plus 1. */
  readonly vocabulary?: number | undefined;
}

/** Tokens of a file in shared memory. */
export interface TokenFile {
  readonly tokens: Int32Array;
  readonly vocabulary: number;
}

const cure = "give a file of tokens";

/** Value of the first 32-bit integer in llm.c's token files. */
const llmcMagic = 20240520;
const llmcHeaderBytes = 1024;

const magicFault = (path: string): DataError =>
  new DataError(`${path} begins with the header of llm.c instead of a token; set headerBytes: ${llmcHeaderBytes}`);

type Layout = Pick<TokenFileOptions, "dtype" | "headerBytes">;

/** NumPy's names of element types that can contain tokens, and the corresponding dtypes. */
const arrayTypes: Readonly<Record<string, Layout["dtype"]>> = { "<u2": "u16", "<u4": "u32", "<i4": "u32" };

/**
 * Returns the layout of an open file, from the options or from the header of a `.npy` file.
 *
 * @throws DataError if the array has an unsupported element type or shape.
 */
const layoutOf = ({ name, sizeBytes, read }: OpenFile, { dtype, headerBytes }: Layout): Layout => {
  const head = new Uint8Array(Math.min(sizeBytes, 2 ** 17));
  read(0, head);
  if (!isNpy(head)) return { dtype, headerBytes };
  const header = parseNpyHeader(head, name);
  const { descr, shape, dataOffset } = header;
  const refuse = (what: string): never => {
    throw new DataError(`${name} is a NumPy array ${what}, or write only its elements with tofile`);
  };
  if (arrayTypes[descr] !== dtype)
    refuse(`with elements of ${descr}, but dtype is ${dtype}; convert it with astype("uint${dtype.slice(1)}")`);
  if (shape.length !== 1)
    refuse(`of ${shape.length} dimensions, but tokens need one dimension; flatten it with ravel()`);
  if (headerBytes !== 0 && headerBytes !== dataOffset)
    refuse(`with a header of ${dataOffset} bytes, but headerBytes is ${headerBytes}; omit headerBytes`);
  requireWholeNpy(header, name, sizeBytes);
  return { dtype, headerBytes: dataOffset };
};

/** Returns the number of tokens in an open file. @throws DataError if the file is empty, or ends within a token. */
const countIn = ({ name, sizeBytes }: Pick<OpenFile, "name" | "sizeBytes">, { dtype, headerBytes }: Layout): number => {
  const each = bytesOfToken({ dtype });
  const count = (sizeBytes - headerBytes) / each;
  if (count <= 0)
    throw new DataError(
      `${name} has ${sizeBytes} bytes${headerBytes === 0 ? "" : `, including a header of ${headerBytes}`}, so it holds no tokens; ${cure}`,
    );
  if (!Number.isInteger(count))
    throw new DataError(
      `${name} has ${sizeBytes - headerBytes} bytes of tokens, which is not a multiple of ${each}; the file was truncated, or dtype is not ${dtype}, or headerBytes is not ${headerBytes}`,
    );
  return count;
};

/**
 * Loads a token file, as written by nanoGPT (no header), llm.c (`headerBytes: 1024`) or `numpy.save`, into shared
 * memory.
 *
 * Cost: one pass in chunks; four bytes of memory per token.
 * @throws DataError if the file is empty or ends within a token, or, with the position of the token, if a token is
 * beyond the vocabulary.
 * @example
 * ```ts
 * import { writeFileSync } from "node:fs";
 * writeFileSync("tokens.bin", new Uint8Array(Uint16Array.of(1, 2, 3, 4).buffer));
 * console.log([...loadTokenFile("tokens.bin", { dtype: "u16", headerBytes: 0 }).tokens]); // [1, 2, 3, 4]
 * ```
 */
export const loadTokenFile = (path: string, { vocabulary, ...options }: TokenFileOptions): TokenFile => {
  const file = openFile(path, cure, "tokens");
  try {
    const { dtype, headerBytes } = layoutOf(file, options);
    const each = bytesOfToken({ dtype });
    const count = countIn(file, { dtype, headerBytes });
    requireMemory(
      4 * count,
      `the ${count} tokens of ${path}`,
      "use a smaller file, or keep the tokens on disk: onDisk",
    );
    const tokens = new Int32Array(new SharedArrayBuffer(4 * count));
    const bound = Math.min(vocabulary ?? Infinity, 2 ** 31);
    let greatest = 0;
    let at = 0;
    for (const piece of file.pieces(headerBytes)) {
      const view = new DataView(piece.buffer, piece.byteOffset, piece.byteLength);
      const read = piece.length / each; // an integer, because 1 MiB is a multiple of both sizes
      if (headerBytes === 0 && at === 0 && piece.length >= 4 && view.getInt32(0, true) === llmcMagic)
        throw magicFault(path);
      for (let i = 0; i < read; i++) {
        const token = each === 2 ? view.getUint16(2 * i, true) : view.getUint32(4 * i, true);
        if (token >= bound)
          throw new DataError(
            `${path}: token ${at + i}, at byte ${headerBytes + (at + i) * each}, is ${token}, but ${vocabulary === undefined ? "no vocabulary is that large" : `the vocabulary has ${vocabulary}`}; check dtype, headerBytes and vocabulary`,
          );
        tokens[at + i] = token;
        if (token > greatest) greatest = token;
      }
      at += read;
    }
    return { tokens, vocabulary: vocabulary ?? greatest + 1 };
  } finally {
    file.close();
  }
};

/** Number of file parts covered by the digest, and number of bytes per part. */
const [digestParts, digestBytes] = [64, 2 ** 16];

const digestOfParts = ({ sizeBytes, read }: OpenFile): string => {
  const hash = createHash("sha256").update(String(sizeBytes));
  const part = new Uint8Array(Math.min(digestBytes, sizeBytes));
  for (let i = 0; i < digestParts; i++) {
    read(Math.floor(((sizeBytes - part.length) * i) / (digestParts - 1)), part);
    hash.update(part);
  }
  return hash.digest("hex");
};

/**
 * Opens a token file of any size. Tokens are read when a batch needs them; see `loadTokenFile`. Tokens beyond the
 * vocabulary are found only when they are read.
 *
 * @throws DataError if the file is empty or ends within a token.
 * @example
 * ```ts
 * import { writeFileSync } from "node:fs";
 * writeFileSync("tokens.bin", new Uint8Array(Uint16Array.of(1, 2, 3, 4).buffer));
 * console.log(openTokenFile("tokens.bin", { dtype: "u16", headerBytes: 0, vocabulary: 10 }).count); // 4
 * ```
 */
export const openTokenFile = (
  path: string,
  options: TokenFileOptions & { readonly vocabulary: number },
): FileTokens => {
  const file = openFile(path, cure, "tokens");
  try {
    const { dtype, headerBytes } = layoutOf(file, options);
    const count = countIn(file, { dtype, headerBytes });
    if (headerBytes === 0 && file.sizeBytes >= 4) {
      const first = new Uint8Array(4);
      file.read(0, first);
      if (new DataView(first.buffer).getInt32(0, true) === llmcMagic) throw magicFault(path);
    }
    return { path, dtype, headerBytes, count, vocabulary: options.vocabulary, digest: digestOfParts(file) };
  } finally {
    file.close();
  }
};

import { DataError } from "../errors.ts";
import { openFile } from "./file-pieces.ts";
import { requireMemory } from "./require-memory.ts";

/** How tokens lie in a file: little-endian integers, one after the other. */
export interface TokenFileOptions {
  readonly dtype: "u16" | "u32";
  /** Bytes in front of the first token. */
  readonly headerBytes: number;
  /** Tokens must be below it. Default: one more than the greatest. */
  readonly vocabulary?: number | undefined;
}

/** Tokens of a file in shared memory. */
export interface TokenFile {
  readonly tokens: Int32Array;
  readonly vocabulary: number;
}

const cure = "name a file of tokens";

/** What files of llm.c begin with. */
const llmcMagic = 20240520;
const llmcHeaderBytes = 1024;

/**
 * Read a file of tokens, as nanoGPT (no header) and llm.c (`headerBytes: 1024`) write them, into shared memory.
 *
 * Cost: one pass in pieces; four bytes a token stay.
 * @throws DataError for a file that is empty or ends within a token, and for a token beyond the vocabulary, with its
 * place.
 */
export const loadTokenFile = (path: string, { dtype, headerBytes, vocabulary }: TokenFileOptions): TokenFile => {
  const each = dtype === "u16" ? 2 : 4;
  const file = openFile(path, cure);
  try {
    const count = (file.sizeBytes - headerBytes) / each;
    if (count <= 0)
      throw new DataError(
        `${path} has ${file.sizeBytes} bytes${headerBytes === 0 ? "" : `, a header of ${headerBytes} among them`}, so it holds no tokens; ${cure}`,
      );
    if (!Number.isInteger(count))
      throw new DataError(
        `${path} has ${file.sizeBytes - headerBytes} bytes of tokens, no multiple of ${each}; it was truncated, or dtype is not ${dtype}, or headerBytes not ${headerBytes}`,
      );
    requireMemory(4 * count, `the ${count} tokens of ${path}`, "use a smaller file");
    const tokens = new Int32Array(new SharedArrayBuffer(4 * count));
    const most = Math.min(vocabulary ?? Infinity, 2 ** 31);
    let greatest = 0;
    let at = 0;
    for (const piece of file.pieces(headerBytes)) {
      const view = new DataView(piece.buffer, piece.byteOffset, piece.byteLength);
      const read = piece.length / each; // whole: a mebibyte is a multiple of both sizes
      if (headerBytes === 0 && at === 0 && piece.length >= 4 && view.getInt32(0, true) === llmcMagic)
        throw new DataError(
          `${path} begins with the header of llm.c, which is no token; set headerBytes: ${llmcHeaderBytes}`,
        );
      for (let i = 0; i < read; i++) {
        const token = each === 2 ? view.getUint16(2 * i, true) : view.getUint32(4 * i, true);
        if (token >= most)
          throw new DataError(
            `${path}: token ${at + i}, at byte ${headerBytes + (at + i) * each}, is ${token}, but ${vocabulary === undefined ? "no vocabulary is so large" : `the vocabulary has ${vocabulary}`}; check dtype, headerBytes and vocabulary`,
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

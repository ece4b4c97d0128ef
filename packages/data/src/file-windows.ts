import type { TensorSpec } from "@skein/tensor-core";
import { DataError } from "./errors.ts";

/**
 * Tokens that are read from a file on demand. The file contains consecutive little-endian integers. This object is
 * plain data, which can be posted to threads.
 */
export interface FileTokens {
  readonly path: string;
  readonly dtype: "u16" | "u32";
  /** Byte offset of the first token. */
  readonly headerBytes: number;
  readonly count: number;
  /** Exclusive upper bound of token ids. */
  readonly vocabulary: number;
  /** SHA-256 over the file size and some parts of the file. Hashing the complete file would take minutes. */
  readonly digest: string;
}

/** Samples that are windows of the tokens in a file. Each window is read when a batch needs it. */
export interface FileWindows {
  readonly count: number;
  /** Specs of `inputs` and `labels`, i32 [window]. */
  readonly fields: { readonly [name: string]: TensorSpec };
  readonly file: FileTokens;
  /** Index of the first token of window 0. */
  readonly firstToken: number;
}

/** Returns the number of tokens per window. */
export const lengthOf = ({ fields }: Pick<FileWindows, "fields">): number => fields["inputs"]!.shape[0]!;

export const bytesOfToken = ({ dtype }: Pick<FileTokens, "dtype">): 2 | 4 => (dtype === "u16" ? 2 : 4);

/**
 * Makes samples from the tokens `begin` to `end` (exclusive) of a file, as `textRecords` does for a text in memory.
 *
 * @throws DataError if there are fewer tokens than one window needs.
 * @example
 * ```ts
 * import { writeFileSync } from "node:fs";
 * writeFileSync("tokens.bin", new Uint8Array(Uint16Array.of(1, 2, 3, 4, 5, 6, 7, 8, 9).buffer));
 * const file = openTokenFile("tokens.bin", { dtype: "u16", headerBytes: 0, vocabulary: 10 });
 * const windows = fileWindows(file, { begin: 0, end: 9 }, 4, "tokens");
 * console.log((await readBatch(windows, [1]))["inputs"]!.toNumbers()); // [5, 6, 7, 8]
 * ```
 */
export const fileWindows = (
  file: FileTokens,
  { begin, end }: { readonly begin: number; readonly end: number },
  window: number,
  name: string,
): FileWindows => {
  const count = Math.floor((end - begin - 1) / window);
  if (count < 1)
    throw new DataError(
      `${name} has ${end - begin} tokens, but one window needs ${window + 1}; use a longer text or a shorter window`,
    );
  const spec: TensorSpec = { dtype: "i32", shape: [window] };
  return { count, fields: { inputs: spec, labels: spec }, file, firstToken: begin };
};

import type { TensorSpec } from "@skein/tensor-core";
import { DataError } from "./errors.ts";

/** Tokens that stay in their file: little-endian integers, one after the other. Plain data. */
export interface FiledTokens {
  readonly path: string;
  readonly dtype: "u16" | "u32";
  /** Bytes in front of the first token. */
  readonly headerBytes: number;
  readonly count: number;
  /** All tokens are below it. */
  readonly vocabulary: number;
  /** SHA-256 of some parts of the file, and of its size: a look at all of it would take minutes. */
  readonly digest: string;
}

/** Windows of such tokens as samples, each read when a batch needs it. */
export interface FiledWindows {
  readonly count: number;
  /** `inputs` and `labels`, i32 [window]. */
  readonly fields: { readonly [name: string]: TensorSpec };
  readonly file: FiledTokens;
  /** The token that window 0 begins with. */
  readonly firstToken: number;
}

/** Tokens of a window. */
export const lengthOf = ({ fields }: Pick<FiledWindows, "fields">): number => fields["inputs"]!.shape[0]!;

export const bytesOfToken = ({ dtype }: Pick<FiledTokens, "dtype">): 2 | 4 => (dtype === "u16" ? 2 : 4);

/**
 * Windows of the tokens from `begin` up to `end`, as `textRecords` has them of a text in memory.
 *
 * @throws DataError where these are fewer than one window takes.
 */
export const filedWindows = (
  file: FiledTokens,
  { begin, end }: { readonly begin: number; readonly end: number },
  window: number,
  name: string,
): FiledWindows => {
  const count = Math.floor((end - begin - 1) / window);
  if (count < 1)
    throw new DataError(
      `${name} has ${end - begin} tokens, but one window takes ${window + 1}; use a longer text or a shorter window`,
    );
  const spec: TensorSpec = { dtype: "i32", shape: [window] };
  return { count, fields: { inputs: spec, labels: spec }, file, firstToken: begin };
};

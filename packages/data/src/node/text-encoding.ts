import { DataError } from "../errors.ts";
import type { Tokens } from "../streams/pack-windows.ts";
import type { Tokenizer } from "../tokenizer.ts";

const mostTextBytes = 2 ** 29 - 24;

/** A text of UTF-8; a mark at its beginning is part of it. @throws DataError for one that no string holds. */
export const textOf = (bytes: Uint8Array): string => {
  if (bytes.length > mostTextBytes)
    throw new DataError(
      `a text of ${bytes.length} bytes is more than a string holds, ${mostTextBytes}; split the file, or make lines of .jsonl of it`,
    );
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes)); // decodes no shared memory
};

/** What makes bytes or tokens of texts, and what stands between them. */
export interface TextEncoding {
  encode(text: string | Uint8Array): Tokens;
  /** The same of several texts. */
  encodeAll(texts: readonly (string | Uint8Array)[]): Tokens[];
  readonly separator: Tokens;
}

const encoder = new TextEncoder();
const paragraph = "\n\n";

/**
 * @param separator Default: the token that ends a text, where the tokenizer has one, or an empty line.
 * @param tokenizer Default: each byte of UTF-8 is a token.
 */
export const textEncoding = (separator: string | undefined, tokenizer: Tokenizer | undefined): TextEncoding => {
  const encode = (text: string | Uint8Array): Tokens => {
    if (tokenizer === undefined) return typeof text === "string" ? encoder.encode(text) : text;
    if (text.length === 0) return new Int32Array(0);
    return tokenizer.encode(typeof text === "string" ? text : textOf(text));
  };
  const encodeAll = (texts: readonly (string | Uint8Array)[]): Tokens[] => {
    if (tokenizer?.encodeAll === undefined) return texts.map(encode);
    return tokenizer.encodeAll(texts.map((text) => (typeof text === "string" ? text : textOf(text))));
  };
  const end = separator === undefined ? tokenizer?.endOfText : undefined;
  return { encode, encodeAll, separator: end === undefined ? encode(separator ?? paragraph) : Int32Array.of(end) };
};

import { DataError } from "../errors.ts";
import type { Tokens } from "../streams/pack-windows.ts";
import type { Tokenizer } from "../tokenizer.ts";

const maxTextBytes = 2 ** 29 - 24;

/**
 * Decodes UTF-8 and keeps a byte order mark. @throws DataError if the text is longer than the maximum string length.
 */
export const textOf = (bytes: Uint8Array): string => {
  if (bytes.length > maxTextBytes)
    throw new DataError(
      `a text of ${bytes.length} bytes exceeds the maximum length of a string, ${maxTextBytes}; split the file, or convert it to lines of .jsonl`,
    );
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes)); // TextDecoder rejects shared memory
};

/** Conversion of texts to bytes or tokens, with the encoded separator between texts. */
export interface TextEncoding {
  encode(text: string | Uint8Array): Tokens;
  /** Encodes each of several texts. */
  encodeAll(texts: readonly (string | Uint8Array)[]): Tokens[];
  readonly separator: Tokens;
}

const encoder = new TextEncoder();
const paragraph = "\n\n";

/**
 * Returns the encoding of texts.
 *
 * @param separator Text between documents. Default: the tokenizer's end-of-text token, or an empty line if no such
 * token exists.
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

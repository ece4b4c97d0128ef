/** Converts texts to token ids and back. */
export interface Tokenizer {
  /** Exclusive upper bound of token ids. */
  readonly vocabulary: number;
  /** Encodes a text without special tokens before or after it. */
  encode(text: string): Int32Array;
  /** Encodes several texts separately, faster than with one call of `encode` per text. Absent: `encode` is as fast. */
  readonly encodeAll?: ((texts: readonly string[]) => Int32Array[]) | undefined;
  /**
   * Encodes a prompt, with the special tokens that a generative model expects before it, such as a beginning-of-text
   * token.
   */
  encodePrompt(text: string): Int32Array;
  /** Decodes tokens. Bytes that are not valid UTF-8 become replacement characters. */
  decode(tokens: ArrayLike<number>): string;
  /** Id of the end-of-text token. Absent: no such token. */
  readonly endOfText?: number | undefined;
}

const bytesOf = (text: string): Int32Array => Int32Array.from(new TextEncoder().encode(text));

/**
 * A tokenizer with one token per UTF-8 byte.
 *
 * @example
 * ```ts
 * console.log([...byteTokenizer.encode("abc")], byteTokenizer.decode([97, 98])); // [97, 98, 99] ab
 * ```
 */
export const byteTokenizer: Tokenizer = {
  vocabulary: 256,
  encode: bytesOf,
  encodePrompt: bytesOf,
  decode: (tokens) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(tokens)),
};

/**
 * Decodes the text that `tokens` append to the text of `before`. Decoding `tokens` alone would be wrong, because a
 * sentencepiece tokenizer drops a leading space, and thus the space before the first word.
 *
 * @example
 * ```ts
 * console.log(decodeAfter(byteTokenizer, [97], [98, 99])); // bc
 * ```
 */
export const decodeAfter = (
  { decode }: Pick<Tokenizer, "decode">,
  before: ArrayLike<number>,
  tokens: ArrayLike<number>,
): string => {
  const last = Array.from(before).slice(-1);
  const [context, whole] = [decode(last), decode([...last, ...Array.from(tokens)])];
  return whole.startsWith(context) ? whole.slice(context.length) : decode(tokens);
};

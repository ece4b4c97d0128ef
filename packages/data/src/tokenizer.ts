/** What makes numbers of a text, and a text of numbers. */
export interface Tokenizer {
  /** Tokens are below it. */
  readonly vocabulary: number;
  /** Nothing is put in front or behind. */
  encode(text: string): Int32Array;
  /** The same with what a model that continues a text expects in front of it, such as a token that begins one. */
  encodePrompt(text: string): Int32Array;
  /** Bytes that are no UTF-8 become replacement characters. */
  decode(tokens: ArrayLike<number>): string;
  /** The token behind the last of a text, where there is one. */
  readonly endOfText?: number | undefined;
}

const bytesOf = (text: string): Int32Array => Int32Array.from(new TextEncoder().encode(text));

/** A token for each byte of UTF-8. */
export const byteTokenizer: Tokenizer = {
  vocabulary: 256,
  encode: bytesOf,
  encodePrompt: bytesOf,
  decode: (tokens) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(tokens)),
};

/**
 * The text that `tokens` add to the text of `before`. A tokenizer of sentencepiece drops a space that begins a text,
 * and so the space of a first word when `tokens` are decoded alone.
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

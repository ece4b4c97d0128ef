/**
 * Returns the characters that represent bytes in a byte-level vocabulary. A printable byte is represented by the
 * character with the same code, other bytes by characters from code 256 upward.
 */
const byteCharacters = (): string[] => {
  const isPrintable = (byte: number): boolean =>
    (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(isPrintable(byte) ? byte : next++));
};

/**
 * Returns the contents of Hugging Face's files for a tokenizer with 256 byte tokens, `th` (256), `the` (257) and an
 * end-of-text token (258).
 */
export const byteLevelTokenizer = (): {
  readonly "tokenizer.json": string;
  readonly "tokenizer_config.json": string;
} => {
  const vocab = Object.fromEntries([...byteCharacters(), "th", "the", "<|end|>"].map((token, id) => [token, id]));
  const level = { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true };
  const end = { id: 258, content: "<|end|>", single_word: false, lstrip: false, rstrip: false, normalized: false };
  const model = { type: "BPE", vocab, merges: ["t h", "th e"], fuse_unk: false, byte_fallback: false };
  const tokenizer = {
    version: "1.0",
    added_tokens: [{ ...end, special: true }],
    normalizer: null,
    pre_tokenizer: level,
    post_processor: null,
    decoder: level,
    model,
  };
  return {
    "tokenizer.json": JSON.stringify(tokenizer),
    "tokenizer_config.json": JSON.stringify({ eos_token: "<|end|>" }),
  };
};

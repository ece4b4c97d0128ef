import type { BytePairs } from "./byte-pairs.ts";

/** Texts of the two files of a tokenizer, in the format of Hugging Face's libraries. */
export interface TokenizerTexts {
  /** Content of `tokenizer.json`. */
  readonly tokenizer: string;
  /** Content of `tokenizer_config.json`, which names the end-of-text token. */
  readonly config: string;
}

/**
 * Converts byte pairs to Hugging Face's `tokenizer.json`, with GPT-2's pre-tokenization and byte-level characters, and
 * without added start or end tokens.
 *
 * @param endOfText End-of-text token, which gets id 0. The byte-pair tokens follow.
 * @example
 * ```ts
 * const pairs = learnBytePairs(new Map([["abab", 10]]), { vocabulary: 258 });
 * console.log(Object.keys(tokenizerTexts(pairs, "<end>"))); // ['tokenizer', 'config']
 * ```
 */
export const tokenizerTexts = ({ tokens, merges }: BytePairs, endOfText: string): TokenizerTexts => ({
  tokenizer: `${JSON.stringify(
    {
      version: "1.0",
      truncation: null,
      padding: null,
      added_tokens: [
        {
          id: 0,
          content: endOfText,
          single_word: false,
          lstrip: false,
          rstrip: false,
          normalized: false,
          special: true,
        },
      ],
      normalizer: null,
      pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true },
      post_processor: null,
      decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
      model: {
        type: "BPE",
        dropout: null,
        unk_token: null,
        continuing_subword_prefix: null,
        end_of_word_suffix: null,
        fuse_unk: false,
        byte_fallback: false,
        ignore_merges: false,
        vocab: Object.fromEntries([endOfText, ...tokens].map((token, number) => [token, number])),
        merges,
      },
    },
    undefined,
    1,
  )}\n`,
  config: `${JSON.stringify(
    {
      tokenizer_class: "PreTrainedTokenizerFast",
      eos_token: endOfText,
      clean_up_tokenization_spaces: false,
    },
    undefined,
    1,
  )}\n`,
});

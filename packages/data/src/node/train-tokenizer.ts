import { WordCounts } from "../byte-level.ts";
import { type BytePairOptions, type BytePairs, learnBytePairs } from "../byte-pairs.ts";
import { DataError } from "../errors.ts";
import { type DocumentOptions, eachDocument } from "./load-documents.ts";
import { textOf } from "./text-encoding.ts";

/** A trained tokenizer, with the number of documents used for training. */
export interface LearnedTokenizer extends BytePairs {
  readonly documents: number;
  /** Locations of skipped lines and rows. */
  readonly damaged: readonly string[];
}

/**
 * Learns byte pairs from texts (see `learnBytePairs`), with GPT-2's pre-tokenization.
 *
 * Memory: one text, and each distinct word.
 * @throws DataError if a text is unreadable, or if there is no text.
 * @example
 * ```ts
 * import { writeFileSync } from "node:fs";
 * writeFileSync("text.txt", "the cat and the dog and the cat ".repeat(20));
 * const learned = await trainTokenizer({ file: "text.txt", vocabulary: 262 });
 * console.log(Object.keys(learned)); // ['tokens', 'merges', 'counts', 'documents', 'damaged']
 * ```
 */
export const trainTokenizer = async ({
  file,
  ...options
}: DocumentOptions & BytePairOptions): Promise<LearnedTokenizer> => {
  const words = new WordCounts();
  const damaged: string[] = [];
  let documents = 0;
  for await (const document of eachDocument({ file, ...options }, damaged)) {
    documents++;
    words.add(typeof document === "string" ? document : textOf(document));
  }
  const counts = words.inByteCharacters();
  if (counts.size === 0)
    throw new DataError(`${[file].flat().join(", ")}: there is no text to train a tokenizer on; give files with text`);
  return { ...learnBytePairs(counts, options), documents, damaged };
};

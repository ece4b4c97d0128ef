import { WordCounts } from "../byte-level.ts";
import { type BytePairOptions, type BytePairs, learnBytePairs } from "../byte-pairs.ts";
import { DataError } from "../errors.ts";
import { type DocumentOptions, eachDocument } from "./load-documents.ts";
import { textOf } from "./text-encoding.ts";

/** A learned tokenizer, and what it was learned of. */
export interface LearnedTokenizer extends BytePairs {
  readonly documents: number;
  /** Lines and rows that were left out, as errors call them. */
  readonly damaged: readonly string[];
}

/**
 * Learn byte pairs of texts (see `learnBytePairs`), after GPT-2's way to cut texts into words.
 *
 * Memory: one text, and each different word once.
 * @throws DataError for texts that cannot be read, and for none.
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
    throw new DataError(`${[file].flat().join(", ")}: there is no text to learn tokens of; name files with text`);
  return { ...learnBytePairs(counts, options), documents, damaged };
};

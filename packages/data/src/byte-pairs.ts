import { ArgumentError } from "@skein/tensor-core";
import { BinaryHeap } from "@skein/tensor-core/backend";
import { byteCharacters } from "./byte-level.ts";

/** A learned byte-pair vocabulary: 256 byte-level characters, and merged pairs of tokens. */
export interface BytePairs {
  /** Tokens, indexed by token id. The first 256 are the byte-level characters. */
  readonly tokens: readonly string[];
  /** Merges, in the order in which they were learned and must be applied. */
  readonly merges: readonly (readonly [left: string, right: string])[];
  /** Number of occurrences of each pair when it was merged, in the order of `merges`. The numbers never increase. */
  readonly counts: readonly number[];
}

export interface BytePairOptions {
  /** Maximum vocabulary size, including the 256 byte tokens. */
  readonly vocabulary: number;
  /** Minimum number of occurrences for a pair to be merged. Default: 2. */
  readonly minimumCount?: number;
}

/** A word of the text as a list of tokens. Merges shorten the list. */
interface Word {
  readonly tokens: number[];
  readonly count: number;
}

/** A pair of adjacent tokens. */
interface Pair {
  readonly left: number;
  readonly right: number;
  count: number;
  /** Indices of the words that contain the pair, or contained it earlier. */
  readonly words: number[];
}

/** A pair, with its number of occurrences when it was queued. */
interface Entry {
  readonly pair: Pair;
  readonly count: number;
}

/**
 * Whether `one` is merged before `other`. The higher count is merged first. With equal counts, the lower token ids are
 * merged first, as in Hugging Face's trainer.
 */
const isBefore = (one: Entry, other: Entry): boolean => {
  if (one.count !== other.count) return one.count > other.count;
  const { left, right } = one.pair;
  return left === other.pair.left ? right < other.pair.right : left < other.pair.left;
};

/** Number of occurrences of each pair over all words. */
class PairCounts {
  private readonly pairs = new Map<number, Pair>();

  add(left: number, right: number, change: number, word: number): Pair {
    const key = left * 2 ** 26 + right; // exact, because both are below 2²⁶
    let pair = this.pairs.get(key);
    if (pair === undefined) this.pairs.set(key, (pair = { left, right, count: 0, words: [] }));
    pair.count += change;
    if (change > 0 && pair.words.at(-1) !== word) pair.words.push(word);
    return pair;
  }

  [Symbol.iterator](): Iterator<Pair> {
    return this.pairs.values();
  }
}

/**
 * Replaces each occurrence of a pair in a word by one token, from left to right, and updates the counts of adjacent
 * pairs.
 *
 * @param grown Receives the pairs whose counts have increased.
 */
const mergeIn = (
  words: readonly Word[],
  index: number,
  merged: Pair,
  token: number,
  pairs: PairCounts,
  grown: Set<Pair>,
) => {
  const { tokens, count } = words[index]!;
  const { left, right } = merged;
  let to = 0;
  for (let from = 0; from < tokens.length; to++) {
    if (tokens[from] !== left || tokens[from + 1] !== right) {
      tokens[to] = tokens[from++]!;
      continue;
    }
    const [before, after] = [to > 0 ? tokens[to - 1] : undefined, tokens[from + 2]];
    if (before !== undefined) {
      pairs.add(before, left, -count, index);
      grown.add(pairs.add(before, token, count, index));
    }
    if (after !== undefined) {
      pairs.add(right, after, -count, index);
      grown.add(pairs.add(token, after, count, index));
    }
    tokens[to] = token;
    from += 2;
  }
  tokens.length = to;
};

const maxVocabulary = 2 ** 24;

/**
 * Learns byte pairs: repeatedly merges the most frequent pair of tokens into a new token. Ties are resolved by token
 * ids in the order of Hugging Face's `BpeTrainer`, so that equal words lead to equal tokens on each machine. Source:
 * Sennrich, Haddow and Birch 2016, Neural Machine Translation of Rare Words with Subword Units, ACL.
 *
 * Cost: O(C log C) for C count changes. A merge changes at most one count per character of each distinct word that
 * contains the pair. The time of a merge does not depend on the other words, because counts are updated incrementally
 * and a heap returns the next pair.
 *
 * @param wordCounts Number of occurrences of each word. Words consist of byte-level characters (see `byteCharacters`).
 * @throws ArgumentError if the vocabulary is smaller than the 256 byte tokens, or too large.
 * @example
 * ```ts
 * const { tokens, merges } = learnBytePairs(new Map([["abab", 10], ["ab", 5]]), { vocabulary: 258 });
 * console.log(tokens.length, merges.length); // 258 2
 * ```
 */
export const learnBytePairs = (
  wordCounts: ReadonlyMap<string, number>,
  { vocabulary, minimumCount = 2 }: BytePairOptions,
): BytePairs => {
  if (!Number.isInteger(vocabulary) || vocabulary < 256 || vocabulary > maxVocabulary)
    throw new ArgumentError(
      `a vocabulary of ${vocabulary} is not usable: it must hold the 256 byte tokens, and at most ${maxVocabulary} tokens; use, for example, 8192`,
    );
  const tokens = byteCharacters.toSorted();
  const numbers = new Map(tokens.map((token, number) => [token, number]));
  const words: Word[] = [];
  const pairs = new PairCounts();
  for (const [text, count] of wordCounts) {
    const word = Array.from(text, (character) => numbers.get(character)!);
    for (let i = 1; i < word.length; i++) pairs.add(word[i - 1]!, word[i]!, count, words.length);
    words.push({ tokens: word, count });
  }
  const queue = new BinaryHeap(isBefore);
  for (const pair of pairs) queue.push({ pair, count: pair.count });
  const merges: (readonly [string, string])[] = [];
  const counts: number[] = [];
  const learned = new Set<Pair>();
  while (tokens.length < vocabulary) {
    const next = queue.pop();
    if (next === undefined || next.count < minimumCount) break;
    const { pair, count } = next;
    if (count !== pair.count) {
      // other merges have changed the count in the meantime
      if (pair.count > 0) queue.push({ pair, count: pair.count });
      continue;
    }
    const [left, right] = [tokens[pair.left]!, tokens[pair.right]!];
    const text = left + right;
    // Two different pairs may form the same token: a and bc, ab and c.
    const token = numbers.get(text) ?? tokens.length;
    if (token === tokens.length) {
      tokens.push(text);
      numbers.set(text, token);
    }
    if (!learned.has(pair)) {
      learned.add(pair);
      merges.push([left, right]);
      counts.push(count);
    }
    const grown = new Set<Pair>();
    const indices = pair.words.splice(0);
    for (const index of indices) mergeIn(words, index, pair, token, pairs, grown);
    pair.count = 0;
    for (const each of grown) if (each.count > 0) queue.push({ pair: each, count: each.count });
  }
  return { tokens, merges, counts };
};

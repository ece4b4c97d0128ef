import { ArgumentError } from "@skein/tensor-core";
import { BinaryHeap } from "@skein/tensor-core/backend";
import { byteCharacters } from "./byte-level.ts";

/** Tokens that were learned of a text: 256 characters of bytes, and what pairs of tokens become. */
export interface BytePairs {
  /** Tokens by their numbers, from the first character of a byte on. */
  readonly tokens: readonly string[];
  /** In the order in which they were learned, and are to be applied. */
  readonly merges: readonly (readonly [left: string, right: string])[];
  /** How often each pair was there when it was learned; never more than the one before. */
  readonly counts: readonly number[];
}

export interface BytePairOptions {
  /** Most tokens, those of bytes included. */
  readonly vocabulary: number;
  /** A pair is learned when it is there so often. Default: 2. */
  readonly minimumCount?: number;
}

/** A word of the text as tokens, which become fewer. */
interface Word {
  readonly tokens: number[];
  readonly count: number;
}

/** Two tokens beside each other. */
interface Pair {
  readonly left: number;
  readonly right: number;
  count: number;
  /** Words that have, or had, the pair. */
  readonly words: number[];
}

/** A pair with the count that it had when it was put in the queue. */
interface Entry {
  readonly pair: Pair;
  readonly count: number;
}

/** The more frequent first; of equals the one of older tokens, as in Hugging Face's trainer. */
const isBefore = (one: Entry, other: Entry): boolean => {
  if (one.count !== other.count) return one.count > other.count;
  const { left, right } = one.pair;
  return left === other.pair.left ? right < other.pair.right : left < other.pair.left;
};

/** Pairs of all words, counted. */
class PairCounts {
  private readonly pairs = new Map<number, Pair>();

  add(left: number, right: number, change: number, word: number): Pair {
    const key = left * 2 ** 26 + right; // exact: both are below it
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
 * Put one token in place of a pair, wherever a word has it, from its beginning on; counts of pairs around it change.
 *
 * @param grown takes pairs that there are more of now.
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

const mostVocabulary = 2 ** 24;

/**
 * Learn byte pairs: the most frequent pair of tokens becomes a token, again and again. Equally frequent ones in the
 * order of their tokens, so that the same words give the same tokens everywhere.
 *
 * Cost: counts are kept up to date, and a queue gives the next pair, so a merge takes time by the words that have the
 * pair, not by the text: O(C log C) for C changes of counts, at most one for each character of each different word and
 * each merge in it.
 *
 * @param counts of words, in characters of bytes (see `byteCharacters`).
 * @throws ArgumentError for a vocabulary that has no room for all bytes.
 * Source: Sennrich, Haddow and Birch 2016, Neural Machine Translation of Rare Words with Subword Units, ACL; the order
 * of ties is that of Hugging Face's `BpeTrainer`.
 */
export const learnBytePairs = (
  wordCounts: ReadonlyMap<string, number>,
  { vocabulary, minimumCount = 2 }: BytePairOptions,
): BytePairs => {
  if (!Number.isInteger(vocabulary) || vocabulary < 256 || vocabulary > mostVocabulary)
    throw new ArgumentError(
      `a vocabulary of ${vocabulary} is not usable: each of 256 bytes is a token, and at most ${mostVocabulary} are held; use such as 8192`,
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
      // some of it went to other tokens since
      if (pair.count > 0) queue.push({ pair, count: pair.count });
      continue;
    }
    const [left, right] = [tokens[pair.left]!, tokens[pair.right]!];
    const text = left + right;
    // Two pairs may make the same token: a and bc, ab and c.
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
    const places = pair.words.splice(0);
    for (const index of places) mergeIn(words, index, pair, token, pairs, grown);
    pair.count = 0;
    for (const each of grown) if (each.count > 0) queue.push({ pair: each, count: each.count });
  }
  return { tokens, merges, counts };
};

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { learnBytePairs, tokenizerTexts } from "../src/index.ts";
import { loadTokenizer, trainTokenizer } from "../src/node.ts";
import { byteCharacters } from "../src/byte-level.ts";

/** Returns the path of results of Hugging Face's trainer, see make.py. */
const place = (name: string): string => join(import.meta.dirname, "tokenizer", name);
const expected = JSON.parse(readFileSync(place("expected.json"), "utf8")) as {
  readonly merges: readonly (readonly [string, string])[];
  readonly vocab: Readonly<Record<string, number>>;
  readonly encoded: readonly { readonly text: string; readonly ids: readonly number[] }[];
};

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "skein-tokenizer-"))));
afterEach(() => rmSync(folder, { recursive: true }));

const save = async (vocabulary: number, endOfText = "<|endoftext|>") => {
  const learned = await trainTokenizer({ file: place("corpus.txt"), vocabulary });
  const { tokenizer, config } = tokenizerTexts(learned, endOfText);
  writeFileSync(join(folder, "tokenizer.json"), tokenizer);
  writeFileSync(join(folder, "tokenizer_config.json"), config);
  return { learned, tokenizer: loadTokenizer(folder, import.meta.url) };
};

/** Word counts with words of a few letters, so that pairs overlap, have equal counts, and form existing tokens. */
const words = fc.dictionary(
  fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: 1, maxLength: 9 }),
  fc.nat(6),
  {
    noNullPrototype: true,
  },
);

/** Reference implementation, which counts all pairs of all words again for each merge. */
const learnSlowly = (counts: ReadonlyMap<string, number>, numMerges: number): (readonly [string, string])[] => {
  const numbers = new Map(byteCharacters.toSorted().map((token, number) => [token, number]));
  const texts = Array.from(counts, ([text, count]) => ({ tokens: [...text], count }));
  const merges: (readonly [string, string])[] = [];
  while (numbers.size < 256 + numMerges) {
    const pairs = new Map<string, { readonly pair: readonly [string, string]; count: number }>();
    for (const { tokens, count } of texts)
      for (let i = 1; i < tokens.length; i++) {
        const pair = [tokens[i - 1]!, tokens[i]!] as const;
        const found = pairs.get(pair.join(" ")) ?? { pair, count: 0 };
        pairs.set(pair.join(" "), { pair, count: found.count + count });
      }
    const [best] = [...pairs.values()].sort(
      (one, other) =>
        other.count - one.count ||
        numbers.get(one.pair[0])! - numbers.get(other.pair[0])! ||
        numbers.get(one.pair[1])! - numbers.get(other.pair[1])!,
    );
    if (best === undefined || best.count < 2) break;
    const [left, right] = best.pair;
    if (!merges.some(([l, r]) => l === left && r === right)) merges.push(best.pair);
    if (!numbers.has(left + right)) numbers.set(left + right, numbers.size);
    for (const { tokens } of texts)
      for (let i = 0; i + 1 < tokens.length; i++)
        if (tokens[i] === left && tokens[i + 1] === right) tokens.splice(i, 2, left + right);
  }
  return merges;
};

describe("byte pairs", () => {
  test("equal those of Hugging Face's trainer, with the same ids", async () => {
    const { learned } = await save(400 - 1);
    expect(learned.merges).toEqual(expected.merges);
    expect(Object.fromEntries(["<|endoftext|>", ...learned.tokens].map((token, i) => [token, i]))).toEqual(
      expected.vocab,
    );
  });

  test("equal those of the reference implementation for any words", () => {
    fc.assert(
      fc.property(words, (dictionary) => {
        const counts = new Map(Object.entries(dictionary));
        expect(learnBytePairs(counts, { vocabulary: 256 + 12 }).merges).toEqual(learnSlowly(counts, 12));
      }),
      { numRuns: 200 },
    );
  });

  test("become rarer, and extend the vocabulary up to the requested size", async () => {
    for (const vocabulary of [256, 257, 300, 10_000]) {
      const { tokens, merges, counts } = await trainTokenizer({ file: place("corpus.txt"), vocabulary });
      expect(tokens.length).toBeLessThanOrEqual(vocabulary);
      expect(new Set(tokens).size).toBe(tokens.length);
      expect(merges).toHaveLength(counts.length);
      expect(counts).toEqual(counts.toSorted((one, other) => other - one));
    }
    expect(() => learnBytePairs(new Map(), { vocabulary: 255 })).toThrow("a vocabulary of 255 is not usable");
  });

  test("of a text without words are rejected", async () => {
    const file = join(folder, "empty.txt");
    writeFileSync(file, "");
    await expect(trainTokenizer({ file, vocabulary: 300 })).rejects.toThrow("there is no text to train a tokenizer on");
  });
});

describe("a trained tokenizer.json", () => {
  test("encodes as Hugging Face's tokenizers", async () => {
    const { tokenizer } = await save(400 - 1);
    for (const { text, ids } of expected.encoded) expect([text, ...tokenizer.encode(text)]).toEqual([text, ...ids]);
    expect(tokenizer.endOfText).toBe(0);
    expect(tokenizer.vocabulary).toBe(Object.keys(expected.vocab).length);
  });

  test("decodes every encoded text", async () => {
    const { tokenizer } = await save(300);
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.constantFrom("", " ", "\n ", " don't.", "the"), (text, end) => {
        const whole = text + end;
        expect(tokenizer.decode(tokenizer.encode(whole))).toBe(whole);
      }),
      { numRuns: 300 },
    );
  });
});

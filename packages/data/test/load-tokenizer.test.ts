import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { byteLevelTokenizer } from "@skein/testing";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { byteTokenizer, decodeAfter, type Tokenizer } from "../src/index.ts";
import { loadTokenizer } from "../src/node.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-tokenizer-"));
afterAll(() => rmSync(folder, { recursive: true }));
const load = (place = folder): Tokenizer => loadTokenizer(place, import.meta.url);
beforeAll(() => {
  for (const [name, text] of Object.entries(byteLevelTokenizer())) writeFileSync(join(folder, name), text);
});

/** Writes a folder `name` with the files of a tokenizer. */
const write = (name: string, tokenizer: object, config?: object): string => {
  const place = join(folder, name);
  mkdirSync(place, { recursive: true });
  writeFileSync(join(place, "tokenizer.json"), JSON.stringify(tokenizer));
  if (config !== undefined) writeFileSync(join(place, "tokenizer_config.json"), JSON.stringify(config));
  return place;
};

const parts = { normalizer: null, pre_tokenizer: null, post_processor: null, decoder: null, added_tokens: [] };
const numbered = (...tokens: string[]) => Object.fromEntries(tokens.map((token, id) => [token, id]));
const bytes = Array.from({ length: 256 }, (_, i) => `<0x${i.toString(16).toUpperCase().padStart(2, "0")}>`);

/** Tokenizer of byte pairs in sentencepiece format, as in Llama 2. */
const sentencepiece = {
  ...parts,
  normalizer: {
    type: "Sequence",
    normalizers: [
      { type: "Prepend", prepend: "▁" },
      { type: "Replace", pattern: { String: " " }, content: "▁" },
    ],
  },
  decoder: {
    type: "Sequence",
    decoders: [
      { type: "Replace", pattern: { String: "▁" }, content: " " },
      { type: "ByteFallback" },
      { type: "Fuse" },
      { type: "Strip", content: " ", start: 1, stop: 0 },
    ],
  },
  model: {
    type: "BPE",
    unk_token: "<unk>",
    fuse_unk: true,
    byte_fallback: true,
    vocab: numbered("<unk>", "<s>", "</s>", ...bytes, "▁", ..."abenst.,?!'", "▁a", "▁b", "▁n"),
    merges: ["▁ a", "▁ b", "▁ n"],
  },
};
const wordPiece = {
  ...parts,
  pre_tokenizer: { type: "BertPreTokenizer" },
  decoder: { type: "WordPiece", prefix: "##", cleanup: false },
  model: {
    type: "WordPiece",
    unk_token: "[UNK]",
    continuing_subword_prefix: "##",
    max_input_chars_per_word: 100,
    vocab: numbered("[UNK]", "[PAD]", "a", "##b", "."),
  },
};

const texts = fc.string({
  unit: fc.oneof(
    fc.constantFrom("t", "h", "e", " ", " .", " ?", " !", " ,", " n't", " 's", " ' ", " 've"),
    fc.string({ unit: "binary", minLength: 1 }),
  ),
});

describe("a tokenizer", () => {
  test("decodes every encoded text", () => {
    const { "tokenizer.json": byteLevel } = byteLevelTokenizer();
    const tidy = { clean_up_tokenization_spaces: true };
    const all = [byteTokenizer, load(), load(write("tidy-bytes", JSON.parse(byteLevel) as object, tidy))];
    const pieces = [load(write("pieces", sentencepiece)), load(write("tidy-pieces", sentencepiece, tidy))];
    fc.assert(
      fc.property(texts, texts, (text, more) => {
        // Sentencepiece replaces spaces by this character.
        for (const tokenizer of (text + more).includes("▁") ? all : [...all, ...pieces]) {
          const { vocabulary, encode, decode } = tokenizer;
          const tokens = encode(text);
          expect(decode(tokens)).toBe(text);
          expect(tokens.every((token) => token >= 0 && token < vocabulary)).toBe(true);
          const whole = encode(text + more);
          const at = tokens.findIndex((token, i) => token !== whole[i]);
          const shared = at < 0 ? tokens.length : at;
          expect(
            decode(whole.slice(0, shared)) + decodeAfter(tokenizer, whole.slice(0, shared), whole.slice(shared)),
          ).toBe(text + more);
        }
      }),
      {
        examples: [
          ["", ""],
          ["\uFEFFthe", "t"],
          ["\u0000 the 🪿", " b"],
          ["if (a != 0 && b ? c : d)", " do n't ."],
        ],
      },
    );
  });

  test("encodes several texts as it encodes each alone", () => {
    const { encode, encodeAll } = load();
    fc.assert(
      fc.property(fc.array(texts), (several) => {
        expect(encodeAll!(several)).toEqual(several.map(encode));
      }),
      { numRuns: 20, examples: [[[]], [["", "the"]]] },
    );
  });

  test("of a file uses the merges of the file, and knows the end-of-text token", () => {
    for (const place of [folder, join(folder, "tokenizer.json")]) {
      const { vocabulary, encode, encodePrompt, endOfText } = load(place);
      expect([...encode("the thin")]).toEqual([257, expect.any(Number), 256, expect.any(Number), expect.any(Number)]);
      expect(encodePrompt("the")).toEqual(encode("the"));
      expect([vocabulary, endOfText]).toEqual([259, 258]);
    }
  });

  test("removes spaces before punctuation only for WordPiece, and only if its configuration requires it", () => {
    const decoded = (config?: object) => {
      const { encode, decode } = load(write("words", wordPiece, config));
      return decode(encode("ab ."));
    };
    expect(decoded({ clean_up_tokenization_spaces: true })).toBe("ab.");
    expect(decoded({ clean_up_tokenization_spaces: false })).toBe("ab .");
    expect(decoded({})).toBe("ab .");
    rmSync(join(folder, "words", "tokenizer_config.json"));
    expect(decoded()).toBe("ab .");
  });

  test("reads special tokens that are only in the configuration", () => {
    const ids = sentencepiece.model.vocab;
    const named = (config: object) => load(write("named", sentencepiece, config));
    const plain = named({});
    expect(plain.encode("</s>").length).toBeGreaterThan(1);
    for (const config of [
      { eos_token: "</s>" },
      { eos_token: { __type: "AddedToken", content: "</s>", lstrip: false } },
      { additional_special_tokens: ["</s>"] },
      { extra_special_tokens: { end: "</s>" } },
      { added_tokens_decoder: { 2: { content: "</s>", special: true, normalized: false } } },
    ]) {
      const { encode, decode, vocabulary } = named(config);
      expect([...encode("a</s>")]).toEqual([ids["▁a"], 2]);
      expect(decode([ids["▁a"]!, 2])).toBe("a");
      expect(vocabulary).toBe(plain.vocabulary);
    }
    const further = named({ added_tokens_decoder: { 300: { content: "<tool>", special: true, normalized: false } } });
    expect([...further.encode("<tool>a")]).toEqual([300, ids["▁a"]]);
    expect(further.vocabulary).toBe(301);
    for (const key of ["4000000000", "-1", "1.5", "x", "0"])
      expect(
        named({ added_tokens_decoder: { [key]: { content: "<far>", special: true } }, additional_special_tokens: "x" })
          .vocabulary,
      ).toBe(plain.vocabulary);
    expect(named({ pad_token: "<pad>", added_tokens_decoder: { 2: { content: "<x>", special: true } } })).toMatchObject(
      {
        vocabulary: plain.vocabulary,
      },
    );
  });

  test("that is not a tokenizer is rejected by name", () => {
    expect(() => load(join(folder, "nowhere"))).toThrow(/nowhere cannot be read \(ENOENT\); give a tokenizer\.json/);
    writeFileSync(join(folder, "cut.json"), '{"model": ');
    expect(() => load(join(folder, "cut.json"))).toThrow(/cut\.json does not contain a JSON object/);
    writeFileSync(join(folder, "empty.json"), "{}");
    expect(() => load(join(folder, "empty.json"))).toThrow(
      /empty\.json is not a tokenizer that @huggingface\/tokenizers can read/,
    );
  });

  /**
   * Writes a copy of the test tokenizer with additional `model.vocab` and `added_tokens` entries. Returns the file
   * path.
   */
  const withIds = (vocab: object, added: readonly object[] = []): string => {
    const { model, ...rest } = JSON.parse(byteLevelTokenizer()["tokenizer.json"]!) as Record<string, object>;
    const path = join(folder, "ids.json");
    const changed = { ...rest, model: { ...model, vocab: { ...(model as { vocab: object }).vocab, ...vocab } } };
    const { added_tokens: before } = rest as unknown as { added_tokens: readonly object[] };
    writeFileSync(path, JSON.stringify({ ...changed, added_tokens: [...before, ...added] }));
    return path;
  };

  test.each([
    [{ a: -5 }, 'ids.json: token "a" has the id -5, but ids must be integers from 0; save it again'],
    [{ a: 1.5 }, 'token "a" has the id 1.5, but'],
    [{ a: "7" }, 'token "a" has the id "7", but'],
    [{ a: null }, 'token "a" has the id null, but'],
    [{ a: 1e15 }, 'token "a" has the id 1000000000000000, but there are 259 tokens, so ids must be 0 to 258'],
    [{ a: 4e9 }, 'token "a" has the id 4000000000, but there are 259 tokens'],
    [{ a: 70_000 }, 'token "a" has the id 70000, but there are 259 tokens'],
  ])("with ids %j outside its vocabulary is rejected by name", (vocab, message) => {
    expect(() => load(withIds(vocab))).toThrow(message);
  });

  test("may have gaps before the ids of its special tokens", () => {
    const token = {
      content: "<end>",
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    };
    expect(load(withIds({}, [{ ...token, id: 280 }])).vocabulary).toBe(281);
    expect(() => load(withIds({}, [{ ...token, id: 4e9 }]))).toThrow('token "<end>" has the id 4000000000');
    expect(() => load(withIds({}, [token]))).toThrow('token "<end>" has the id nothing');
  });

  test("that fails for a text reports it in one line", () => {
    const { normalizer: _, ...rest } = JSON.parse(byteLevelTokenizer()["tokenizer.json"]!) as Record<string, object>;
    const path = join(folder, "fails.json");
    const changed = { ...rest, normalizer: { type: "Replace", pattern: { String: "a" }, content: { toString: 1 } } };
    writeFileSync(path, JSON.stringify(changed));
    expect(() => load(path).encode("a")).toThrow(
      /fails\.json: encoding a text of 1 characters fails \(@huggingface\/tokenizers: .*\); save it again/,
    );
  });

  test("with a pattern that backtracks exponentially is stopped and reported", { tags: "full" }, () => {
    const { pre_tokenizer: _, ...rest } = JSON.parse(byteLevelTokenizer()["tokenizer.json"]!) as Record<string, object>;
    const split = { type: "Split", pattern: { Regex: "(a+)+$" }, behavior: "Isolated", invert: false };
    writeFileSync(join(folder, "slow.json"), JSON.stringify({ ...rest, pre_tokenizer: split }));
    const { encode } = load(join(folder, "slow.json"));
    expect(() => encode(`${"a".repeat(60)}b`)).toThrow(
      /slow\.json: encoding a text of 61 characters took more than 5 s; a pattern .* "\(a\+\)\+\$"; use another tokenizer/,
    );
  });
});

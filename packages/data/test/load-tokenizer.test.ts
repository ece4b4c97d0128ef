import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { byteLevelTokenizer } from "@skein/testing";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { byteTokenizer, type Tokenizer } from "../src/index.ts";
import { loadTokenizer } from "../src/node.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-tokenizer-"));
afterAll(() => rmSync(folder, { recursive: true }));
const load = (place = folder): Tokenizer => loadTokenizer(place, import.meta.url);
beforeAll(() => {
  for (const [name, text] of Object.entries(byteLevelTokenizer())) writeFileSync(join(folder, name), text);
});

const texts = fc.string({
  unit: fc.oneof(fc.constantFrom("t", "h", "e", " "), fc.string({ unit: "binary", minLength: 1 })),
});

describe("a tokenizer", () => {
  test("gives back every text", () => {
    const both = [byteTokenizer, load()];
    fc.assert(
      fc.property(texts, (text) => {
        for (const { vocabulary, encode, decode } of both) {
          const tokens = encode(text);
          expect(decode(tokens)).toBe(text);
          expect(tokens.every((token) => token >= 0 && token < vocabulary)).toBe(true);
        }
      }),
      { examples: [[""], ["\uFEFFthe"], ["\u0000 the 🪿"]] },
    );
  });

  test("encodes several texts as one by one", () => {
    const { encode, encodeAll } = load();
    fc.assert(
      fc.property(fc.array(texts), (several) => {
        expect(encodeAll!(several)).toEqual(several.map(encode));
      }),
      { numRuns: 20, examples: [[[]], [["", "the"]]] },
    );
  });

  test("of a file merges what the file says, and knows the end of a text", () => {
    for (const place of [folder, join(folder, "tokenizer.json")]) {
      const { vocabulary, encode, encodePrompt, endOfText } = load(place);
      expect([...encode("the thin")]).toEqual([257, expect.any(Number), 256, expect.any(Number), expect.any(Number)]);
      expect(encodePrompt("the")).toEqual(encode("the"));
      expect([vocabulary, endOfText]).toEqual([259, 258]);
    }
  });

  test("that is none is refused by name", () => {
    expect(() => load(join(folder, "nowhere"))).toThrow(/nowhere cannot be read \(ENOENT\); name a tokenizer\.json/);
    writeFileSync(join(folder, "cut.json"), '{"model": ');
    expect(() => load(join(folder, "cut.json"))).toThrow(/cut\.json holds no JSON object/);
    writeFileSync(join(folder, "empty.json"), "{}");
    expect(() => load(join(folder, "empty.json"))).toThrow(
      /empty\.json is no tokenizer that @huggingface\/tokenizers reads/,
    );
  });

  /** The tokenizer of the folder with another `model.vocab` and other `added_tokens`. */
  const withIds = (vocab: object, added: readonly object[] = []): string => {
    const { model, ...rest } = JSON.parse(byteLevelTokenizer()["tokenizer.json"]!) as Record<string, object>;
    const path = join(folder, "ids.json");
    const changed = { ...rest, model: { ...model, vocab: { ...(model as { vocab: object }).vocab, ...vocab } } };
    const { added_tokens: before } = rest as unknown as { added_tokens: readonly object[] };
    writeFileSync(path, JSON.stringify({ ...changed, added_tokens: [...before, ...added] }));
    return path;
  };

  test.each([
    [{ a: -5 }, 'ids.json: token "a" has the id -5, but ids are whole numbers from 0; save it again'],
    [{ a: 1.5 }, 'token "a" has the id 1.5, but'],
    [{ a: "7" }, 'token "a" has the id "7", but'],
    [{ a: null }, 'token "a" has the id null, but'],
    [{ a: 1e15 }, 'token "a" has the id 1000000000000000, but there are 259 tokens, so ids go from 0 to 258'],
    [{ a: 4e9 }, 'token "a" has the id 4000000000, but there are 259 tokens'],
    [{ a: 70_000 }, 'token "a" has the id 70000, but there are 259 tokens'],
  ])("with ids %j outside of its vocabulary is refused by name", (vocab, message) => {
    expect(() => load(withIds(vocab))).toThrow(message);
  });

  test("may leave some numbers out in front of its special tokens", () => {
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

  test("that fails with a text says so in a line", () => {
    const { normalizer: _, ...rest } = JSON.parse(byteLevelTokenizer()["tokenizer.json"]!) as Record<string, object>;
    const path = join(folder, "fails.json");
    const changed = { ...rest, normalizer: { type: "Replace", pattern: { String: "a" }, content: { toString: 1 } } };
    writeFileSync(path, JSON.stringify(changed));
    expect(() => load(path).encode("a")).toThrow(
      /fails\.json: encoding a text of 1 characters fails \(@huggingface\/tokenizers: .*\); save it again/,
    );
  });

  test("whose pattern backtracks without end is given up and named", { tags: "full" }, () => {
    const { pre_tokenizer: _, ...rest } = JSON.parse(byteLevelTokenizer()["tokenizer.json"]!) as Record<string, object>;
    const split = { type: "Split", pattern: { Regex: "(a+)+$" }, behavior: "Isolated", invert: false };
    writeFileSync(join(folder, "slow.json"), JSON.stringify({ ...rest, pre_tokenizer: split }));
    const { encode } = load(join(folder, "slow.json"));
    expect(() => encode(`${"a".repeat(60)}b`)).toThrow(
      /slow\.json: encoding a text of 61 characters takes more than 5 s; a pattern .* "\(a\+\)\+\$"; use another tokenizer/,
    );
  });
});

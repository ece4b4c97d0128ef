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
});

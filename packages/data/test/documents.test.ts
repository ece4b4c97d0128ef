import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { byteTokenizer, type Tokenizer } from "../src/index.ts";
import { type DocumentOptions, loadDocuments, loadTokenFile, type TokenFileOptions } from "../src/node.ts";
import { jsonLines } from "../src/node/json-lines.ts";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "skein-documents-"))));
afterEach(() => rmSync(folder, { recursive: true }));

const put = (name: string, content: string | Uint8Array): string => {
  const path = join(folder, name);
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, content);
  return path;
};

const textOf = async (options: DocumentOptions): Promise<string> =>
  new TextDecoder().decode(Uint8Array.from((await loadDocuments(options)).text));

/** A byte tokenizer with an end-of-text token. */
const ending: Tokenizer = { ...byteTokenizer, vocabulary: 257, endOfText: 256 };

describe("texts", () => {
  test("of a single file are its bytes, in shared memory", async () => {
    const file = put("a.txt", "Été\r\n\n");
    const { text, remarks } = await loadDocuments({ file });
    expect(new TextDecoder().decode(Uint8Array.from(text))).toBe("Été\r\n\n");
    expect(text.buffer).toBeInstanceOf(SharedArrayBuffer);
    expect(remarks).toEqual([]);
  });

  test("of lines, files and folders are concatenated with the given separator", async () => {
    const lines = put("all/b.jsonl", '{"text": "one"}\r\n\n{"text": ""}\n{"text": "two", "body": "zwei"}');
    put("all/a.txt", "zero");
    put("all/deep/c.md", "three");
    put("all/.hidden.txt", "no");
    put("all/picture.png", "no");
    const last = put("last.txt", "last");
    expect(await textOf({ file: lines })).toBe("one\n\ntwo");
    expect(await textOf({ file: lines, separator: "" })).toBe("onetwo");
    expect(await textOf({ file: lines, field: "body", skipDamaged: true })).toBe("zwei");
    expect(await textOf({ file: [join(folder, "all"), last], separator: "|" })).toBe("zero|one|two|three|last");
    expect((await loadDocuments({ file: [join(folder, "all"), last] })).remarks).toEqual(["6 documents"]);
  });

  test("are encoded separately, with the end-of-text token between them if there is one", async () => {
    const file = put("a.jsonl", '{"text": "ab"}\n{"text": "c"}\n');
    const tokens = async (options: Partial<DocumentOptions>): Promise<number[]> => [
      ...(await loadDocuments({ file, ...options })).text,
    ];
    expect(await tokens({ tokenizer: ending })).toEqual([97, 98, 256, 99]);
    expect(await tokens({ tokenizer: ending, separator: "." })).toEqual([97, 98, 46, 99]);
    expect(await tokens({ tokenizer: byteTokenizer })).toEqual([97, 98, 10, 10, 99]);
    expect((await loadDocuments({ file, tokenizer: ending })).text.buffer).toBeInstanceOf(SharedArrayBuffer);
  });

  test("equal the written texts, for any characters", async () => {
    const path = join(folder, "a.jsonl");
    await fc.assert(
      fc.asyncProperty(fc.array(fc.string({ unit: "grapheme", minLength: 1 }), { minLength: 1 }), async (texts) => {
        writeFileSync(path, texts.map((text) => JSON.stringify({ text })).join("\n"));
        expect(await textOf({ file: path, separator: "\u0000" })).toBe(texts.join("\u0000"));
      }),
      { numRuns: 50 },
    );
  });

  test("in lines longer than a buffer keep their positions", async () => {
    const long = "x".repeat(2 ** 20 + 7);
    const file = put("a.jsonl", `{"text": "${long}"}\n{"text": "${long}y"}\n{`);
    expect([...jsonLines(file, "")].map(({ location, value }) => [location, value?.["text"]])).toEqual([
      [`${file}:1`, long],
      [`${file}:2`, `${long}y`],
      [`${file}:3`, undefined],
    ]);
  });

  test.each<[string, string | Uint8Array, RegExp]>([
    ["no JSON", '\n{"text": "b"\n', /a\.jsonl:2: the line is not valid JSON; correct it, or skip such ent/],
    ["a list", "[1]", /a\.jsonl:1: the line is not a JSON object; /],
    [
      "another key",
      '{"body": "a", "id": 7}',
      /:1: the line has no key text, its keys: body, id; correct it, set field, or/,
    ],
    ["a number", '{"text": 7}', /:1: the line has a text that is not a string/],
    ["no UTF-8", Uint8Array.from([123, 0xff, 125]), /:1: the line is not valid UTF-8/],
  ])("of a line with %s are reported with file and line, or skipped and counted", async (_, content, line) => {
    const file = put("a.jsonl", content);
    await expect(loadDocuments({ file })).rejects.toThrow(line);
    await expect(loadDocuments({ file, skipDamaged: true })).rejects.toThrow("none of 1 lines or rows holds a text");
  });

  test("that are skipped are reported", async () => {
    const file = put("a.jsonl", '{"text": "a"}\n{\n\n{"text": 1}\n{"text": "b"}');
    expect((await loadDocuments({ file, skipDamaged: true })).remarks).toEqual([
      "2 documents",
      `2 damaged lines or rows were skipped: ${file}:2, ${file}:4`,
    ]);
  });

  test("that are missing are reported in one line", async () => {
    await expect(loadDocuments({ file: join(folder, "no.jsonl") })).rejects.toThrow("no.jsonl cannot be read (ENOENT");
    await expect(loadDocuments({ file: folder })).rejects.toThrow(
      `${folder} holds no texts (.jsonl, .md, .ndjson, .parquet, .txt); add texts, or give a file`,
    );
    await expect(loadDocuments({ file: [] })).rejects.toThrow("lists no files");
    expect((await loadDocuments({ file: put("empty.jsonl", "") })).text).toHaveLength(0); // too short is reported as windows
  });
});

describe("a file of tokens", () => {
  const load = (content: Uint8Array, options: Partial<TokenFileOptions> = {}) =>
    loadTokenFile(put("tokens.bin", content), { dtype: "u16", headerBytes: 0, ...options });
  const bytesOf = (tokens: Uint16Array | Uint32Array, header = 0): Uint8Array => {
    const bytes = new Uint8Array(header + tokens.byteLength);
    bytes.set(new Uint8Array(tokens.buffer), header);
    return bytes;
  };

  test("holds the written tokens, with 16 or 32 bits, after a header", () => {
    const tokens = fc.array(fc.integer({ min: 0, max: 65535 }), { minLength: 1 });
    fc.assert(
      fc.property(tokens, fc.integer({ min: 0, max: 9 }), (written, headerBytes) => {
        for (const [dtype, array] of [
          ["u16", Uint16Array.from(written)],
          ["u32", Uint32Array.from(written)],
        ] as const) {
          const read = load(bytesOf(array, headerBytes), { dtype, headerBytes });
          expect([...read.tokens]).toEqual(written);
          expect(read.vocabulary).toBe(Math.max(...written) + 1);
          expect(read.tokens.buffer).toBeInstanceOf(SharedArrayBuffer);
        }
      }),
      { numRuns: 30 },
    );
  });

  test("longer than a buffer is read to its end", () => {
    const tokens = Uint16Array.from({ length: 2 ** 20 + 3 }, (_, i) => i % 50_257);
    const read = load(bytesOf(tokens, 1024), { headerBytes: 1024, vocabulary: 50_257 });
    expect(read.tokens).toEqual(new Int32Array(tokens));
    tokens[2 ** 19 + 1] = 50_257;
    expect(() => load(bytesOf(tokens, 1024), { headerBytes: 1024, vocabulary: 50_257 })).toThrow(
      `token ${2 ** 19 + 1}, at byte ${1024 + 2 * (2 ** 19 + 1)}, is 50257, but the vocabulary has 50257; check dtype`,
    );
  });

  test("that is empty, truncated or of another type is rejected in one line", () => {
    expect(() => load(new Uint8Array())).toThrow("has 0 bytes, so it holds no tokens");
    expect(() => load(new Uint8Array(7), { headerBytes: 8 })).toThrow("has 7 bytes, including a header of 8");
    expect(() => load(new Uint8Array(7))).toThrow(
      "has 7 bytes of tokens, which is not a multiple of 2; the file was truncated, or",
    );
    expect(() => load(bytesOf(Uint32Array.of(2 ** 31)), { dtype: "u32" })).toThrow("but no vocabulary is that large");
    expect(() => load(bytesOf(Uint32Array.of(20240520, 1, 3)))).toThrow("header of llm.c instead of a token; set");
    expect(() => loadTokenFile(folder, { dtype: "u16", headerBytes: 0 })).toThrow(
      "regular file; give a file of tokens",
    );
  });
});

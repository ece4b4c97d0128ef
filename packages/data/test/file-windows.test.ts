import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fileWindows, splitRecords, takeRecords, textRecords } from "../src/index.ts";
import { openTokenFile, Prefetcher, readBatch, readEvaluationBatches } from "../src/node.ts";

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "skein-file-windows-"));
  path = join(folder, "tokens.bin");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const write = (tokens: readonly number[], dtype: "u16" | "u32", headerBytes: number): void => {
  const bytes = Buffer.alloc(headerBytes + tokens.length * (dtype === "u16" ? 2 : 4), 7);
  for (const [i, token] of tokens.entries())
    if (dtype === "u16") bytes.writeUInt16LE(token, headerBytes + 2 * i);
    else bytes.writeUInt32LE(token, headerBytes + 4 * i);
  writeFileSync(path, bytes);
};

const someFile = fc.record({
  tokens: fc.array(fc.nat(999), { minLength: 12, maxLength: 90 }),
  dtype: fc.constantFrom<"u16" | "u32">("u16", "u32"),
  headerBytes: fc.constantFrom(0, 8, 1024),
  window: fc.integer({ min: 1, max: 5 }),
  begin: fc.nat(5),
});

describe("tokens that are read from their file on demand", () => {
  test("give the same samples as tokens in memory, whole or split", async () => {
    await fc.assert(
      fc.asyncProperty(someFile, async ({ tokens, dtype, headerBytes, window, begin }) => {
        write(tokens, dtype, headerBytes);
        const file = openTokenFile(path, { dtype, headerBytes, vocabulary: 1000 });
        expect(file.count).toBe(tokens.length);
        const windows = fileWindows(file, { begin, end: tokens.length }, window, "the text");
        const stored = textRecords(Int32Array.from(tokens.slice(begin)), window);
        expect(windows.count).toBe(stored.count);
        if (stored.count < 2) return;
        const [fileParts, storedParts] = [splitRecords(windows, 0.3), splitRecords(stored, 0.3)];
        for (const [one, other] of [
          [windows, stored],
          [fileParts.train, storedParts.train],
          [fileParts.valid, storedParts.valid],
          [takeRecords(fileParts.valid, 1), takeRecords(storedParts.valid, 1)],
        ] as const) {
          const indices = Array.from({ length: one.count }, (_, i) => one.count - 1 - i);
          expect(await readBatch(one, indices)).toEqual(await readBatch(other, indices));
        }
      }),
    );
  });

  test("are used for training and evaluation in threads, as other data", async () => {
    const tokens = Array.from({ length: 200 }, (_, i) => (i * 37) % 1000);
    write(tokens, "u16", 0);
    const file = openTokenFile(path, { dtype: "u16", headerBytes: 0, vocabulary: 1000 });
    const windows = fileWindows(file, { begin: 0, end: 200 }, 6, "the text");
    const stored = textRecords(Int32Array.from(tokens), 6);
    const options = { batchSize: 4, seed: 5, rank: 1, worldSize: 2 };
    const [one, other] = [new Prefetcher(windows, options), new Prefetcher(stored, options)];
    for (let i = 0; i < 20; i++) expect(await one.next()).toEqual(await other.next());
    await Promise.all([one.close(), other.close()]);
    const judged: unknown[] = [];
    for await (const { batch, mask } of readEvaluationBatches(stored, options))
      judged.push([batch["labels"]!.toNumbers(), mask.toNumbers()]);
    for await (const { batch, mask } of readEvaluationBatches(windows, options))
      expect([batch["labels"]!.toNumbers(), mask.toNumbers()]).toEqual(judged.shift());
    expect(judged).toEqual([]);
  });

  test("that are outside the vocabulary or missing are reported with their position when a batch needs them", async () => {
    write([1, 2, 3, 4, 5, 6, 7, 8, 9], "u32", 8);
    const options = { dtype: "u32", headerBytes: 8, vocabulary: 8 } as const;
    const windows = fileWindows(openTokenFile(path, options), { begin: 0, end: 9 }, 4, "the text");
    expect(windows.count).toBe(2);
    await readBatch(windows, [0]);
    await expect(readBatch(windows, [1])).rejects.toThrow(
      /tokens\.bin: token 7, at byte 36, is 8, but the vocabulary has 8; check dtype, headerBytes and vocabulary$/,
    );
    truncateSync(path, 20);
    await expect(readBatch(windows, [0])).rejects.toThrow(
      /tokens\.bin ended after 20 of 20 bytes during reading; check that the file still exists and is complete$/,
    );
    rmSync(path);
    await expect(readBatch(windows, [0])).rejects.toThrow(/tokens\.bin cannot be read \(ENOENT/);
    write([1, 2, 3], "u16", 0);
    expect(() =>
      fileWindows(
        openTokenFile(path, { ...options, dtype: "u16", headerBytes: 0 }),
        { begin: 0, end: 3 },
        4,
        "the text",
      ),
    ).toThrow("the text has 3 tokens, but one window needs 5; use a longer text or a shorter window");
    writeFileSync(path, Buffer.alloc(7));
    expect(() => openTokenFile(path, { ...options, headerBytes: 0 })).toThrow(
      /7 bytes of tokens, which is not a multiple of 4/,
    );
  });

  test("have a digest of samples of the file", () => {
    write(
      Array.from({ length: 3_000_000 }, (_, i) => i % 1000),
      "u16",
      0,
    );
    const digest = (): string => openTokenFile(path, { dtype: "u16", headerBytes: 0, vocabulary: 1000 }).digest;
    const before = digest();
    expect(digest()).toBe(before);
    write(
      Array.from({ length: 3_000_000 }, (_, i) => (i === 2_999_999 ? 3 : i % 1000)),
      "u16",
      0,
    );
    expect(digest()).not.toBe(before);
    write(
      Array.from({ length: 3_000_001 }, (_, i) => i % 1000),
      "u16",
      0,
    );
    expect(digest()).not.toBe(before);
  });
});

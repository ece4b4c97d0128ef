import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import sharp from "sharp";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { EncodedRecords } from "../src/index.ts";
import { type DamagedImage, EvaluationReader, type EvaluationReaderOptions, openImageFolder } from "../src/node.ts";

const numImages = 8;
const shard = { batchSize: 3, rank: 0, worldSize: 1 };

let root: string;
let images: string;
/** All threads started in a test. */
let threads: Worker[];
const seen = (thread: Worker): void => void threads.push(thread);
beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "skein-judged-"));
  images = join(root, "images");
  for (let i = 0; i < numImages; i++) {
    mkdirSync(join(images, "train", `${i % 2}`), { recursive: true });
    mkdirSync(join(images, "test", `${i % 2}`), { recursive: true });
    await paint(i, 10 * i);
    writeFileSync(join(images, "test", `${i % 2}`, "0.png"), await picture(0));
  }
  threads = [];
  process.on("worker", seen);
});
afterEach(() => {
  process.off("worker", seen);
  rmSync(root, { recursive: true });
});

const picture = (value: number): Promise<Buffer> =>
  sharp(new Uint8Array(4).fill(value), { raw: { width: 2, height: 2, channels: 1 } })
    .png()
    .toBuffer();

const paint = async (image: number, value: number): Promise<void> =>
  writeFileSync(join(images, "train", `${image % 2}`, `${image}.png`), await picture(value));

const open = async (skipDamaged = false): Promise<EncodedRecords> => {
  const { train } = await openImageFolder({
    folder: images,
    size: [2, 2],
    channels: 1,
    fit: "cover",
    testFraction: 0.5,
    skipDamaged,
    cacheMegabytes: 0,
    from: import.meta.url,
  });
  return train;
};

const values = async (reader: EvaluationReader): Promise<number[]> => {
  const found: number[] = [];
  for await (const { batch, validCount } of reader.batches())
    for (let i = 0; i < validCount; i++) found.push(batch["inputs"]!.data[4 * i]! as number);
  return found;
};

const sorted = (numbers: readonly number[]): number[] => numbers.toSorted((a, b) => a - b);
const all = (of: (image: number) => number): number[] => Array.from({ length: numImages }, (_, i) => of(i));

const withReader = async (
  options: Partial<EvaluationReaderOptions>,
  samples: EncodedRecords,
  work: (reader: EvaluationReader) => Promise<void>,
): Promise<void> => {
  const reader = new EvaluationReader(samples, { ...shard, ...options });
  try {
    await work(reader);
  } finally {
    await reader.close();
  }
  expect(threads.map(({ threadId }) => threadId)).toEqual(threads.map(() => -1)); // all threads have ended
};

describe("a reader of evaluation batches", () => {
  test("has one thread for all passes, started with the first batch, which reads nothing between passes", async () => {
    await withReader({}, await open(), async (reader) => {
      expect(threads).toHaveLength(0);
      const first = await values(reader);
      expect(sorted(first)).toEqual(all((image) => 10 * image));
      for (const more of [100, 50]) {
        await new Promise((resolve) => setTimeout(resolve, 30));
        for (let i = 0; i < numImages; i++) await paint(i, 10 * i + more);
        expect(await values(reader)).toEqual(first.map((value) => value + more));
      }
      expect(threads).toHaveLength(1);
    });
  });

  test("has no thread before the first read and after close", async () => {
    const samples = await open();
    await withReader({}, samples, async () => undefined);
    await withReader({}, samples, async (reader) => {
      const batches = reader.batches();
      await batches.next();
      await reader.close();
      for await (const _ of batches) continue; // a later reader receives the remaining batches
    });
    expect(threads).toHaveLength(1);
  });

  test("starts again after an incomplete pass, and serves two passes at once", async () => {
    await withReader({}, await open(), async (reader) => {
      const first = await values(reader);
      for await (const _ of reader.batches()) break;
      expect(await values(reader)).toEqual(first);
      expect(threads).toHaveLength(2);
      expect(await Promise.all([values(reader), values(reader)])).toEqual([first, first]);
    });
  });

  test("reports an unreadable image at its batch, and continues once the image is back", async () => {
    await withReader({}, await open(), async (reader) => {
      const first = await values(reader);
      renameSync(images, join(root, "away"));
      for (let times = 0; times < 2; times++) await expect(values(reader)).rejects.toThrow(/cannot be read \(ENOENT\)/);
      renameSync(join(root, "away"), images);
      expect(await values(reader)).toEqual(first);
      // An image of the last batch, after which no further batch is requested.
      const last = readdirSync(join(images, "train"), { recursive: true, encoding: "utf8" }).find((name) =>
        name.endsWith(`${first.at(-1)! / 10}.png`),
      )!;
      writeFileSync(join(images, "train", last), "no image");
      let numBatches = 0;
      const count = async (): Promise<void> => {
        for await (const _ of reader.batches()) numBatches++;
      };
      await expect(count()).rejects.toThrow(/cannot be decoded/);
      expect(numBatches).toBe(2);
    });
  });

  test("reports a damaged image once", async () => {
    const told: DamagedImage[] = [];
    const samples = await open(true);
    for (const i of [2, 5]) writeFileSync(join(images, "train", `${i % 2}`, `${i}.png`), "no image");
    await withReader({ damaged: (image) => told.push(image) }, samples, async (reader) => {
      const first = await values(reader);
      expect(first).toHaveLength(numImages);
      expect(await values(reader)).toEqual(first);
      expect(threads).toHaveLength(1);
    });
    expect(told.map(({ name }) => name.slice(-5)).sort()).toEqual(["2.png", "5.png"]);
  });
});

import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import sharp from "sharp";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { augmentBatch } from "../src/augment.ts";
import { evaluationBatches, trainingBatches } from "../src/batches.ts";
import { splitRecords, takeRecords } from "../src/cut-records.ts";
import { drawSamples, sampleClasses } from "../src/draw-samples.ts";
import { holdOut } from "../src/hold-out.ts";
import { imageState } from "../src/encoded-records.ts";
import { DataError, type EncodedRecords, type Records } from "../src/index.ts";
import { batchFiller } from "../src/node/batch-filler.ts";
import { type DamagedImage, ImageReader } from "../src/node/image-reader.ts";
import { loadImageFolder, openImageFolder, openImageManifest, Prefetcher, readEvaluationBatches } from "../src/node.ts";
import { batchLayout, writeBatch } from "../src/records.ts";
import { textAt, textTable } from "../src/text-table.ts";

const count = 13;
const imageBytes = 6 * 5 * 3;
const root = mkdtempSync(join(tmpdir(), "skein-encoded-"));
afterAll(() => rmSync(root, { recursive: true }));

const options = {
  size: [6, 5],
  channels: 3,
  fit: "cover",
  testFraction: 0.3,
  skipDamaged: false,
  from: import.meta.url,
} as const;

/** Makes a folder of different noise images: 13 for training, 2 for testing. */
const makeFolder = async (name: string): Promise<string> => {
  const folder = join(root, name);
  for (let i = 0; i < count + 2; i++) {
    const place = join(folder, i < count ? "train" : "test", i % 2 === 0 ? "cat" : "dog");
    mkdirSync(place, { recursive: true });
    const pixels = Uint8Array.from({ length: 9 * 8 * 3 }, (_, at) => (at * 37 + i * 101 + ((at * i) % 17) * 11) % 256);
    const image = sharp(pixels, { raw: { width: 9, height: 8, channels: 3 } });
    writeFileSync(
      join(place, `${i}.${i % 3 === 0 ? "png" : "jpg"}`),
      await (i % 3 === 0 ? image.png() : image.jpeg()).toBuffer(),
    );
  }
  return folder;
};

const open = async (folder: string, kept = count, more: { skipDamaged?: boolean; decodesAtOnce?: number } = {}) =>
  openImageFolder({ folder, ...options, cacheMegabytes: (kept * imageBytes) / 1e6, ...more });

let folder: string;
let eager: { readonly train: Records; readonly test: Records };
beforeAll(async () => {
  folder = await makeFolder("sound");
  eager = await loadImageFolder({ folder, ...options });
});

const ignored = (): void => undefined;

/** Returns the batch that training must receive, from images decoded in advance. */
const expected = (
  records: Records,
  indices: ArrayLike<number>,
  shown?: Parameters<typeof augmentBatch>[3],
): Uint8Array => {
  const bytes = new Uint8Array(batchLayout(records, indices.length).totalBytes);
  writeBatch(records, indices, bytes);
  if (shown !== undefined) augmentBatch(records, indices, bytes, shown);
  return bytes;
};

const augmentation = { cropPadding: 2, flip: true };

describe("images decoded on demand", () => {
  test("equal images decoded in advance, bit by bit, for any cache and with concurrent readers", async () => {
    const batches = fc.array(fc.array(fc.nat(count - 1), { minLength: 1, maxLength: 9 }), {
      minLength: 1,
      maxLength: 6,
    });
    await fc.assert(
      fc.asyncProperty(
        batches,
        fc.nat(count + 2),
        fc.integer({ min: 1, max: 9 }),
        fc.integer({ min: 1, max: 3 }),
        fc.option(fc.record({ seed: fc.nat(), epoch: fc.nat(9) }), { nil: undefined }),
        async (drawn, kept, decodesAtOnce, readers, epoch) => {
          const { train } = await open(folder, kept, { decodesAtOnce });
          const shown = epoch && { ...epoch, augmentation };
          const fillers = Array.from({ length: readers }, () => batchFiller(train, ignored));
          const filled = await Promise.all(
            drawn.map(async (indices, i) => {
              const target = new Uint8Array(batchLayout(train, indices.length).totalBytes);
              await fillers[i % readers]!(indices, target, shown);
              return target;
            }),
          );
          expect(filled).toEqual(drawn.map((indices) => expected(eager.train, indices, shown)));
          expect(train.images.cache.capacity).toBe(Math.min(count + 2, kept));
          const places = [...train.images.states].filter((state) => state > 0);
          expect(places.toSorted((a, b) => a - b)).toEqual(
            Array.from({ length: Math.min(kept, new Set(drawn.flat()).size) }, (_, i) => i + 1),
          );
        },
      ),
      { numRuns: 25 },
    );
  });

  test("are decoded once if all are cached, and at every use without a cache", async () => {
    const all = Array.from({ length: count }, (_, i) => i);
    for (const [kept, found] of [
      [count + 2, count],
      [4, 4],
      [0, 0],
    ] as const) {
      const { train } = await open(folder, kept);
      const fill = batchFiller(train, ignored);
      const target = new Uint8Array(batchLayout(train, count).totalBytes);
      expect(await fill(all, target, undefined)).toBe(0);
      for (let epoch = 0; epoch < 3; epoch++) expect(await fill(all.toReversed(), target, undefined)).toBe(found);
    }
  });

  test("are in batches of any rank, from any position, for any number of threads, however slow the trainer", async () => {
    const batchSize = 4;
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(1, 2),
        fc.nat(count),
        fc.integer({ min: 1, max: 5 }),
        fc.integer({ min: 2, max: 4 }),
        fc.record({ epoch: fc.nat(3), step: fc.nat(2) }),
        fc.array(fc.nat(3), { minLength: 5, maxLength: 5 }),
        async (worldSize, kept, decodesAtOnce, slots, position, delays) => {
          const { train } = await open(folder, kept, { decodesAtOnce });
          await Promise.all(
            Array.from({ length: worldSize }, async (_, rank) => {
              const wanted = { batchSize, seed: 7, rank, worldSize, position };
              const batches = trainingBatches(count, wanted);
              const prefetcher = new Prefetcher(train, { ...wanted, slots, augmentation });
              try {
                for (const delay of delays) {
                  const { batch, position: at } = await prefetcher.next();
                  // This would reveal a slot that is overwritten too early.
                  await new Promise((resolve) => setTimeout(resolve, 5 * delay));
                  const { indices, position: due } = batches.next().value;
                  expect(at).toEqual(due);
                  const shown = { seed: 7, epoch: due.epoch, augmentation };
                  const bytes = expected(eager.train, indices, shown);
                  expect([...batch["inputs"]!.bytes()]).toEqual([...bytes.subarray(0, indices.length * imageBytes)]);
                  expect(batch["labels"]!.toNumbers()).toEqual(
                    [...indices].map((i) => new Int32Array(eager.train.fields["labels"]!.bytes.buffer)[i]),
                  );
                }
              } finally {
                await prefetcher.close();
              }
            }),
          );
        },
      ),
      { numRuns: 4 },
    );
  });

  test("are evaluated in the same batches, also for parts of the data", async () => {
    const { train, test: held } = await open(folder, 3);
    const drawn = [train, eager.train].map((samples) => {
      const parts = holdOut(samples, 0.4, { name: "images", classes: sampleClasses(samples) });
      return holdOut(parts.train, 0.5, { name: "images" });
    });
    const parts = [
      [drawn[0]!.train as EncodedRecords, drawn[1]!.train as Records],
      [splitRecords(drawn[0]!.test, 0.5).valid as EncodedRecords, splitRecords(drawn[1]!.test, 0.5).valid as Records],
      [held, eager.test],
      [drawSamples(train, 7, sampleClasses(train)!), drawSamples(eager.train, 7, sampleClasses(eager.train)!)],
      [train, eager.train],
      [splitRecords(train, 0.4).valid, splitRecords(eager.train, 0.4).valid],
      [
        takeRecords(splitRecords(splitRecords(train, 0.6).valid, 0.5).valid, 3),
        takeRecords(splitRecords(splitRecords(eager.train, 0.6).valid, 0.5).valid, 3),
      ],
    ] as const;
    const shard = { batchSize: 6, rank: 1, worldSize: 2, evenly: true };
    for (const [encoded, stored] of parts) {
      const due = evaluationBatches(stored, shard);
      for await (const { batch, mask, validCount } of readEvaluationBatches(encoded, shard)) {
        const wanted = due.next().value!;
        expect([mask.toNumbers(), validCount]).toEqual([wanted.mask.toNumbers(), wanted.validCount]);
        for (const name of ["inputs", "labels"])
          expect(batch[name]!.toNumbers()).toEqual(wanted.batch[name]!.toNumbers());
      }
      expect(due.next().done).toBe(true);
    }
  });

  test("that are missing are reported at their batch, with their path; earlier batches are returned", async () => {
    const torn = await makeFolder("torn");
    const { train } = await open(torn, 0);
    const wanted = { batchSize: 3, seed: 5, rank: 0, worldSize: 1 };
    const batches = trainingBatches(count, wanted);
    const gone = Array.from({ length: 3 }, () => batches.next().value.indices)[2]![1]!;
    const path = textAt(train.images.source.paths, gone);
    unlinkSync(path);
    const prefetcher = new Prefetcher(train, wanted);
    try {
      for (let step = 0; step < 2; step++) await prefetcher.next();
      const line = `${path} cannot be read (ENOENT); check that the file exists and is readable`;
      expect(await prefetcher.ahead(1)).toEqual(new DataError(line));
      for (let again = 0; again < 2; again++) await expect(prefetcher.next()).rejects.toThrow(line);
    } finally {
      await prefetcher.close();
    }
  });

  test("can be closed while decoding: nothing is written after close", async () => {
    const { train } = await open(folder, count);
    for (let times = 0; times < 3; times++) {
      const prefetcher = new Prefetcher(train, { batchSize: 13, seed: times, rank: 0, worldSize: 1 });
      if (times > 0) await prefetcher.next();
      await prefetcher.close();
      const before = [...train.images.states];
      await new Promise((resolve) => setTimeout(resolve, 20));
      expect([...train.images.states]).toEqual(before);
    }
  });
});

describe("damaged images", () => {
  let torn: string;
  beforeAll(async () => {
    torn = await makeFolder("damaged");
  });

  test("are replaced by the next intact image, the same for all readers, and reported once", async () => {
    const { train: sound } = await open(torn);
    const paths = Array.from({ length: count }, (_, i) => textAt(sound.images.source.paths, i));
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.nat(count - 1), { minLength: 1, maxLength: count - 1 }),
        fc.nat(count),
        fc.array(fc.nat(count - 1), { minLength: 1, maxLength: 20 }),
        async (broken, kept, wanted) => {
          for (const i of broken) renameSync(paths[i]!, `${paths[i]!}.bak`);
          for (const i of broken) writeFileSync(paths[i]!, "no image");
          try {
            const { train } = await open(torn, kept, { skipDamaged: true });
            const told: DamagedImage[] = [];
            const readers = [0, 1].map(() => new ImageReader(train, (image) => told.push(image)));
            const stand = (sample: number): number => (broken.includes(sample) ? stand((sample + 1) % count) : sample);
            await Promise.all(
              wanted.flatMap((sample) =>
                readers.map(async (reader) => {
                  const image = await reader.read(sample);
                  expect(image.sample).toBe(stand(sample));
                  const from = image.sample * imageBytes;
                  expect([...image.pixels]).toEqual([
                    ...eager.train.fields["inputs"]!.bytes.subarray(from, from + imageBytes),
                  ]);
                }),
              ),
            );
            const target = new Uint8Array(batchLayout(train, wanted.length).totalBytes);
            await batchFiller(train, (image) => told.push(image))(wanted, target, undefined);
            expect(target).toEqual(expected(eager.train, wanted.map(stand)));
            const met = broken.filter((i) => train.images.states[i] === imageState.damaged);
            expect(told.map(({ name }) => name).toSorted()).toEqual(met.map((i) => paths[i]!).toSorted());
          } finally {
            for (const i of broken) renameSync(`${paths[i]!}.bak`, paths[i]!);
          }
        },
      ),
      { numRuns: 20 },
    );
  });

  test("cause errors unless they are skipped, and if none is intact; replacements of a part are in the same part", async () => {
    const { train: sound } = await open(torn);
    const path = (i: number): string => textAt(sound.images.source.paths, i);
    const read = (records: EncodedRecords, sample: number) => new ImageReader(records, ignored).read(sample);
    writeFileSync(path(2), "no image");
    const { train: strict } = await open(torn);
    await expect(read(strict, 2)).rejects.toThrow(
      new RegExp(`^${path(2)} cannot be decoded \\(.+\\); restore it, remove it, or skip .* skipDamaged: true$`),
    );
    const { train: lenient } = await open(torn, 0, { skipDamaged: true });
    expect((await read(takeRecords(lenient, 3), 2)).sample).toBe(0);
    expect((await read(lenient, 2)).sample).toBe(3);
    const bytes = readFileSync(path(3));
    writeFileSync(path(2), bytes); // what was damaged once stays so in this run: some ranks have seen it
    expect((await read(lenient, 2)).sample).toBe(3);
    for (const i of [0, 1]) writeFileSync(path(i), "");
    await expect(read(takeRecords(lenient, 3), 1)).rejects.toThrow(/none of 3 images can be decoded; restore them$/);
  });
});

test("a digest depends on bytes, labels and decoding options, not on the location", async () => {
  const digestOf = async (place: string, more: Partial<Parameters<typeof openImageFolder>[0]> = {}) =>
    (await openImageFolder({ folder: place, ...options, cacheMegabytes: 0, ...more })).train.images.digest;
  const other = await makeFolder("elsewhere");
  const digest = await digestOf(folder);
  expect(await digestOf(other, { cacheMegabytes: 1, decodesAtOnce: 1 })).toBe(digest);
  expect(await digestOf(other, { size: [5, 6] })).not.toBe(digest);
  expect(await digestOf(other, { channels: 1 })).not.toBe(digest);
  expect(await digestOf(other, { fit: "stretch" })).not.toBe(digest);
  const labelled = async (labels: string): Promise<string> => {
    const rows = ["1.jpg", "3.png", "5.jpg", "7.jpg"].map(
      (name, i) => `train/dog/${name},${labels[i]},${i < 3 ? "train" : "test"}`,
    );
    writeFileSync(join(other, "labels.csv"), `path,label,split\n${rows.join("\n")}\n`);
    const { train } = await openImageManifest({ ...options, file: join(other, "labels.csv"), cacheMegabytes: 0 });
    return train.images.digest;
  };
  expect(await labelled("abba")).not.toBe(await labelled("abaa"));
  writeFileSync(
    join(other, "train/dog/1.jpg"),
    await sharp(join(other, "train/dog/1.jpg")).jpeg({ quality: 50 }).toBuffer(),
  );
  expect(await digestOf(other)).not.toBe(digest);
});

test("tables of texts return each text", () => {
  fc.assert(
    fc.property(fc.array(fc.string({ unit: "grapheme" })), (texts) => {
      const table = textTable(texts);
      expect(texts.map((_, i) => textAt(table, i))).toEqual(texts);
    }),
  );
});

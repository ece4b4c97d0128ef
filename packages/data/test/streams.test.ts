import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { numLanesOf, type StreamedRecords, textRecords } from "../src/index.ts";
import { viewBatch } from "../src/records.ts";
import type { LanePosition } from "../src/index.ts";
import { type ImageStreamOptions, openImageStream, openTextStream, Prefetcher } from "../src/node.ts";
import type { DamagedImage } from "../src/node.ts";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "skein-streams-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const fixture = (name: string): string => fileURLToPath(new URL(name, import.meta.url));

interface Taking {
  readonly batchSize: number;
  readonly ranks: number;
  readonly count: number;
  readonly lanes?: readonly LanePosition[];
  readonly seed?: number;
  readonly damaged?: (image: DamagedImage) => void;
}

/**
 * Returns the batches over all ranks, with samples concatenated in rank order, and the positions of all lanes
 * afterwards.
 */
const take = async (
  train: StreamedRecords,
  { batchSize, ranks, count, lanes, seed = 3, damaged }: Taking,
): Promise<{ readonly batches: (readonly string[])[]; readonly lanes: readonly LanePosition[] }> => {
  const batches: string[][] = Array.from({ length: count }, () => []);
  const positions: LanePosition[] = [];
  for (let rank = 0; rank < ranks; rank++) {
    const prefetcher = new Prefetcher(train, { batchSize, seed, rank, worldSize: ranks, lanes, damaged });
    try {
      for (const all of batches) {
        const { batch, lanes: placed } = await prefetcher.next();
        const size = batchSize / ranks;
        for (let i = 0; i < size; i++)
          all.push(
            Object.values(batch)
              .map((array) =>
                array
                  .toNumbers()
                  .slice((i * array.data.length) / size, ((i + 1) * array.data.length) / size)
                  .join(),
              )
              .join("|"),
          );
        for (const { lane, position } of placed!) positions[lane] = position;
      }
    } finally {
      await prefetcher.close();
    }
  }
  return { batches, lanes: positions };
};

const textOf = (shard: number, line: number): string => `shard ${shard} line ${line} ${"é".repeat(line % 4)}`;

/** Writes texts into shards of JSON lines. @param ending File name extension: .jsonl or .jsonl.gz. */
const writeTexts = (sizes: readonly number[], ending: string): string => {
  for (const [shard, size] of sizes.entries()) {
    const text = Array.from({ length: size }, (_, i) => JSON.stringify({ text: textOf(shard, i) })).join("\n");
    writeFileSync(join(folder, `${shard}${ending}`), ending.endsWith(".gz") ? gzipSync(text) : text);
  }
  return join(folder, `{0..${sizes.length - 1}}${ending}`);
};

const openRows = (file: string): StreamedRecords =>
  openTextStream({ file, window: 7, shuffleBuffer: 5, skipDamaged: true }).train;

const open = (file: string | readonly string[], shuffleBuffer: number, shardsAtOnce?: number): StreamedRecords =>
  openTextStream({ file, window: 7, shuffleBuffer, shardsAtOnce }).train;

describe("a stream of texts", () => {
  test("is the same for any number of ranks, and continues from its position on another number", async () => {
    const some = fc.record({
      sizes: fc.array(fc.integer({ min: 1, max: 6 }), { minLength: 1, maxLength: 5 }),
      ending: fc.constantFrom(".jsonl", ".jsonl.gz"),
      shuffleBuffer: fc.integer({ min: 1, max: 20 }),
      shardsAtOnce: fc.integer({ min: 1, max: 4 }),
      ranks: fc.constantFrom<[number, number]>([2, 1], [1, 2], [3, 2], [2, 3]),
      cut: fc.integer({ min: 1, max: 5 }),
    });
    await fc.assert(
      fc.asyncProperty(some, async ({ sizes, ending, shuffleBuffer, shardsAtOnce, ranks, cut }) => {
        const train = open(writeTexts(sizes, ending), shuffleBuffer, shardsAtOnce);
        const { batches } = await take(train, { batchSize: 6, ranks: 1, count: 7 });
        const first = await take(train, { batchSize: 6, ranks: ranks[0], count: cut });
        expect(first.batches).toEqual(batches.slice(0, cut));
        const rest = await take(train, { batchSize: 6, ranks: ranks[1], count: 7 - cut, lanes: first.lanes });
        expect(rest.batches).toEqual(batches.slice(cut));
      }),
      { numRuns: 6 },
    );
  });

  test("has each window of each shard once per pass, in a different order in each pass", async () => {
    const sizes = [3, 5, 4];
    const windows = sizes.flatMap((size, shard) => {
      const bytes = new TextEncoder().encode(
        Array.from({ length: size }, (_, i) => `${textOf(shard, i)}\n\n`).join(""),
      );
      const { count, ...others } = textRecords(bytes, 7);
      const batch = viewBatch(
        { count, fields: others.fields },
        count,
        Uint8Array.from(
          Object.values(others.fields).flatMap(({ bytes: from, offsetBytes }) => {
            const each = [...from.subarray(offsetBytes, offsetBytes + 7 * count)];
            return [...each, ...Array.from({ length: (8 - (each.length % 8)) % 8 }, () => 0)];
          }),
        ),
      );
      const [inputs, labels] = [batch["inputs"]!.toNumbers(), batch["labels"]!.toNumbers()];
      return Array.from({ length: count }, (_, i) =>
        [inputs, labels].map((all) => all.slice(7 * i, 7 * i + 7).join()).join("|"),
      );
    });
    const train = open(writeTexts(sizes, ".jsonl"), windows.length, 1);
    const { batches } = await take(train, { batchSize: 1, ranks: 1, count: 3 * windows.length });
    const passes = [0, 1, 2].map((pass) => batches.flat().slice(pass * windows.length, (pass + 1) * windows.length));
    for (const pass of passes) expect(pass.toSorted()).toEqual(windows.toSorted());
    expect(passes[0]).not.toEqual(passes[1]);
    expect(passes[0]).not.toEqual(windows);
    const other = await take(train, { batchSize: 1, ranks: 1, count: windows.length, seed: 4 });
    expect(other.batches.flat()).not.toEqual(passes[0]);
  });

  test("is equal for text files, Parquet files and compressed files", async () => {
    const line = `${"word ".repeat(30)}\n`;
    writeFileSync(join(folder, "plain.txt"), line.repeat(2000));
    writeFileSync(join(folder, "packed.txt.gz"), gzipSync(line.repeat(2000)));
    const [plain, packed] = ["plain.txt", "packed.txt.gz"].map((name) => open(join(folder, name), 3000)) as [
      StreamedRecords,
      StreamedRecords,
    ];
    const first = await take(plain, { batchSize: 2, ranks: 1, count: 8000 });
    expect(await take(packed, { batchSize: 2, ranks: 1, count: 8000 })).toEqual(first);
    // Reading a file in chunks does not change the result.
    expect(first.lanes[0]!.offset).toBeGreaterThan(2 ** 16);
    const [kept, zipped] = ["none", "gzip"].map((name) => openRows(fixture(`parquet/${name}.parquet`))) as [
      StreamedRecords,
      StreamedRecords,
    ];
    const { batches, lanes } = await take(kept, { batchSize: 1, ranks: 1, count: 30 });
    expect((await take(zipped, { batchSize: 1, ranks: 1, count: 30 })).batches).toEqual(batches);
    const further = await take(kept, { batchSize: 1, ranks: 1, count: 20, lanes });
    expect((await take(kept, { batchSize: 1, ranks: 1, count: 50 })).batches.slice(30)).toEqual(further.batches);
  });

  test("reports damage after all earlier batches were returned", async () => {
    const path = writeTexts([40], ".jsonl");
    writeFileSync(join(folder, "0.jsonl"), `${readFileSync(join(folder, "0.jsonl"), "utf8")}\n{"other": 1}\n[1]`);
    const train = open(path, 4);
    const prefetcher = new Prefetcher(train, { batchSize: 4, seed: 1, rank: 0, worldSize: 1 });
    let given = 0;
    const all = async (): Promise<never> => {
      for (;;) {
        await prefetcher.next();
        given++;
      }
    };
    await expect(all()).rejects.toThrow(
      /0\.jsonl, byte \d+: the line has no key text, its keys: other; correct it, set field, or skip such entries with skipDamaged: true$/,
    );
    await prefetcher.close();
    expect(given).toBeGreaterThan(20);
    const left: DamagedImage[] = [];
    const skipping = openTextStream({ file: path, window: 7, shuffleBuffer: 4, skipDamaged: true }).train;
    await take(skipping, { batchSize: 4, ranks: 1, count: 200, damaged: (image) => left.push(image) });
    expect(left.map(({ why }) => why)).toEqual([
      "the line has no key text, its keys: other; correct it, set field",
      "the line is not a JSON object; correct it",
    ]);
  });

  test("reports a truncated gzip and a missing file", async () => {
    const place = writeTexts([300], ".jsonl.gz");
    const whole = readFileSync(join(folder, "0.jsonl.gz"));
    const train = open(place, 4);
    writeFileSync(join(folder, "0.jsonl.gz"), whole.subarray(0, -20));
    await expect(take(train, { batchSize: 4, ranks: 1, count: 2000 })).rejects.toThrow(
      /0\.jsonl\.gz cannot be read as gzip \(unexpected end of file\); copy the file again$/,
    );
    rmSync(join(folder, "0.jsonl.gz"));
    await expect(take(train, { batchSize: 4, ranks: 1, count: 1 })).rejects.toThrow(
      /0\.jsonl\.gz cannot be read \(ENOENT.*\); check that the file still exists and is complete$/,
    );
    expect(() => open(place, 4)).toThrow(/0\.jsonl\.gz is not a regular file; check that the file/);
  });

  test("has a digest of its shards that does not depend on their location", () => {
    const place = writeTexts([3, 4], ".jsonl");
    const before = open(place, 4).stream.digest;
    expect(open(join(folder, "."), 9, 2).stream.digest).toBe(before);
    writeFileSync(join(folder, "1.jsonl"), `${readFileSync(join(folder, "1.jsonl"), "utf8")}\n{"text": "more"}`);
    expect(open(place, 4).stream.digest).not.toBe(before);
  });
});

/** Serves the files of a folder over HTTP with range requests. */
const serve = async (): Promise<{ readonly address: string; readonly server: Server; readonly asked: string[] }> => {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    const bytes = readFileSync(join(folder, request.url!.split("?")[0]!));
    const [, begin, end] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "")!;
    asked.push(`${begin}-${end}`);
    response
      .writeHead(206, { "content-range": `bytes ${begin}-${end}/${bytes.length}`, etag: `"${bytes.length}"` })
      .end(bytes.subarray(Number(begin), Number(end) + 1));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server, asked };
};

const openImages = (
  file: string | readonly string[],
  options: Partial<ImageStreamOptions> = {},
): ReturnType<typeof openImageStream> =>
  openImageStream({
    shards: { of: "webdataset", file, testFile: fixture("shards/gnu.tar") },
    size: [2, 2],
    channels: 1,
    fit: "cover",
    testFraction: 0.1,
    skipDamaged: false,
    from: import.meta.url,
    shuffleBuffer: 8,
    ...options,
  });

/** Returns pixels and class of image i of the shards, as text. */
const picture = (i: number): string => `${Array.from({ length: 4 }, () => 20 * i).join()}|${i % 3}`;

describe("a stream of images", () => {
  test("has each image of a tar once per pass, for any kind of tar, compressed or not", async () => {
    for (const name of ["gnu", "pax"]) {
      const packed = join(folder, `${name}.tar.gz`);
      writeFileSync(packed, gzipSync(readFileSync(fixture(`shards/${name}.tar`))));
      const whole = await take((await openImages(fixture(`shards/${name}.tar`))).train, {
        batchSize: 2,
        ranks: 1,
        count: 8,
      });
      for (const pass of [whole.batches.slice(0, 4), whole.batches.slice(4)])
        expect(pass.flat().toSorted()).toEqual(Array.from({ length: 8 }, (_, i) => picture(i)).toSorted());
      const unpacked = await take((await openImages(packed)).train, { batchSize: 2, ranks: 1, count: 8 });
      expect(unpacked).toEqual(whole);
    }
  });

  test("continues from its position in the middle of a shard", async () => {
    const files = ["gnu", "pax"].map((name) => fixture(`shards/${name}.tar`));
    const { train } = await openImages(files, { shuffleBuffer: 3, shardsAtOnce: 2 });
    const { batches } = await take(train, { batchSize: 4, ranks: 1, count: 12 });
    for (const cut of [1, 5, 10]) {
      const { lanes } = await take(train, { batchSize: 4, ranks: 2, count: cut });
      expect(lanes).toHaveLength(2);
      const rest = await take(train, { batchSize: 4, ranks: 1, count: 12 - cut, lanes });
      expect(rest.batches).toEqual(batches.slice(cut));
    }
  });

  test("is read from a web server in a few requests, as texts are", async () => {
    copyFileSync(fixture("shards/pax.tar"), join(folder, "pax.tar"));
    writeTexts([30], ".jsonl.gz");
    const { address, server, asked } = await serve();
    try {
      const { train } = await openImages(`${address}/pax.tar?key=secret`);
      expect(asked).toEqual([]);
      const here = (await openImages(join(folder, "pax.tar"))).train;
      expect(train.stream.digest).not.toBe("");
      const wanted = { batchSize: 4, ranks: 1, count: 6 };
      expect((await take(train, wanted)).batches).toEqual((await take(here, wanted)).batches);
      expect(asked.length).toBeLessThan(15);
      const texts = open(`${address}/0.jsonl.gz?key=secret`, 10);
      expect((await take(texts, wanted)).batches).toEqual(
        (await take(open(join(folder, "0.jsonl.gz"), 10), wanted)).batches,
      );
      writeFileSync(join(folder, "0.jsonl.gz"), "x");
      await expect(take(texts, wanted)).rejects.toThrow(/^http:.*\/0\.jsonl\.gz cannot be read/);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  test("in Parquet finds the test files in the folder, and their classes", async () => {
    for (const name of ["train-00000-of-00002", "train-00001-of-00002", "test-00000-of-00001"])
      copyFileSync(fixture(`parquet-images/${name}.parquet`), join(folder, `${name}.parquet`));
    const opened = await openImages("", { shards: { of: "image-parquet", file: folder }, size: [3, 4], channels: 3 });
    expect(opened.classes).toBe(3);
    expect(opened.test.count).toBe(2);
    expect(opened.train.stream.shards).toHaveLength(2);
    const { batches, lanes } = await take(opened.train, { batchSize: 2, ranks: 2, count: 9 });
    const labels = batches.flat().map((sample) => Number(sample.split("|")[1]));
    // Two lanes: 4 images of one file alternate with 3 images of another file.
    expect(new Set(labels)).toEqual(new Set([0, 1, 2]));
    const rest = await take(opened.train, { batchSize: 2, ranks: 1, count: 5, lanes });
    expect((await take(opened.train, { batchSize: 2, ranks: 1, count: 14 })).batches.slice(9)).toEqual(rest.batches);
  });

  test("replaces a damaged image by the same intact image on all ranks", async () => {
    const bytes = Uint8Array.from(readFileSync(fixture("shards/gnu.tar")));
    const png = Buffer.from(bytes).indexOf("IDAT", 3 * 3 * 1024);
    bytes.fill(0, png, png + 12);
    const path = join(folder, "damaged.tar");
    writeFileSync(path, bytes);
    const told: DamagedImage[] = [];
    const { train } = await openImages(path, { skipDamaged: true });
    const one = await take(train, { batchSize: 2, ranks: 1, count: 12, damaged: (image) => told.push(image) });
    expect(told).toHaveLength(1);
    expect(told[0]!.name).toMatch(/damaged\.tar\/\d+$/);
    const two = await take(train, { batchSize: 2, ranks: 2, count: 12 });
    expect(two.batches).toEqual(one.batches);
    const strict = await openImages(path);
    await expect(take(strict.train, { batchSize: 2, ranks: 1, count: 12 })).rejects.toThrow(
      /damaged\.tar\/\d+ cannot be decoded \(.*\); restore it, remove it, or skip such images with skipDamaged: true$/,
    );
  });

  test("names missing test files, classes and labels", async () => {
    const gnu = fixture("shards/gnu.tar");
    await expect(openImages(gnu, { shards: { of: "webdataset", file: gnu } })).rejects.toThrow(
      /gnu\.tar: a stream cannot be split into training and test samples; give test files in testFile$/,
    );
    const { train } = await openImages(gnu, {
      shards: { of: "webdataset", file: gnu, testFile: gnu, label: "none" },
      classes: 3,
      skipDamaged: true,
    }).catch(() => ({ train: undefined }));
    expect(train).toBeUndefined();
    await expect(openImages(gnu, { classes: 2 })).rejects.toThrow(/is of class 2, but no training sample is/);
    const named = await openImages(gnu, { shards: { of: "webdataset", file: gnu, testFile: gnu, label: "json" } });
    expect(named.classes).toBe(3);
    const less = {
      ...named.train,
      stream: { ...named.train.stream, samples: { ...named.train.stream.samples, classes: ["cat", "dog"] } },
    } as StreamedRecords;
    await expect(take(less, { batchSize: 2, ranks: 1, count: 8 })).rejects.toThrow(
      /is of class fox, but the test samples have 2 other classes, cat, dog; add samples of each class to testFile, or list all classes in stream\.classes$/,
    );
  });
});

test("rejects a number of lanes that does not divide the batch", () => {
  const train = open(writeTexts([3, 3, 3], ".jsonl"), 4);
  expect(numLanesOf(train.stream, { batchSize: 8, worldSize: 1 })).toBe(2);
  const lane = { offset: 0, skip: 0, shard: 0, block: 0, size: 4, drawn: 0 };
  expect(
    () => new Prefetcher(train, { batchSize: 8, seed: 1, rank: 0, worldSize: 1, lanes: [lane, lane, lane] }),
  ).toThrow("a batch of 8 samples is not divisible by the 3 lanes of the stream; use a multiple of 3");
});

import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  type Images,
  loadImageShards,
  openImageShards,
  readEvaluationBatches,
  type ShardOptions,
} from "../src/node.ts";
import { takeRecords } from "../src/index.ts";
import { openSource } from "../src/node/byte-source.ts";
import { SourcePieces, type TarEntry, tarEntries } from "../src/node/tar-entries.ts";

// Returns the path of a shard written by tar, see shards/make.sh. Sample i of 8 is an image with value 20·i and class i
// mod 3.

const place = (name: string): string => fileURLToPath(new URL(`shards/${name}.tar`, import.meta.url));

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "skein-shards-"))));
afterEach(() => rmSync(folder, { recursive: true }));

const options = {
  size: [2, 2],
  channels: 1,
  fit: "cover",
  testFraction: 0.4,
  skipDamaged: false,
  from: import.meta.url,
} as const;
const load = (shards: ShardOptions, more: object = {}): Promise<Images> =>
  loadImageShards({ ...options, ...more, shards });

/** Returns value and class of each sample, sorted by value. */
const samplesOf = ({ train, test: held }: Pick<Images, "train" | "test">): [number, number][] =>
  [train, held]
    .flatMap(({ count, fields: { inputs, labels } }) =>
      Array.from({ length: count }, (_, i): [number, number] => [
        inputs!.bytes[4 * i]!,
        new Int32Array(labels!.bytes.buffer, labels!.bytes.byteOffset)[i]!,
      ]),
    )
    .sort(([one], [other]) => one - other);

const expected = (count: number): [number, number][] => Array.from({ length: count }, (_, i) => [20 * i, i % 3]);

describe("samples in shards", () => {
  test.each([
    ["gnu", 8],
    ["pax", 8],
    ["ustar", 7],
    ["v7", 7],
  ])("equal the packed samples: %s", async (name, count) => {
    const found = await load({ file: place(name) });
    expect(samplesOf(found)).toEqual(expected(count));
    expect(found.classes).toBe(3);
    expect(samplesOf(await load({ file: place(name), label: "json" }))).toEqual(expected(count));
    const ids = await load({ file: place(name), testFile: place(name), label: "JSON", field: "id", image: "png" });
    expect(samplesOf({ train: ids.train, test: takeRecords(ids.test, 0) })).toEqual(
      Array.from({ length: count }, (_, i) => [20 * i, i]),
    );
  });

  test("of several shards are found by number ranges, folders and lists", async () => {
    for (const number of ["08", "09", "10"]) copyFileSync(place("v7"), join(folder, `a-${number}.tar`));
    const all = [join(folder, "a-{08..10}.tar"), folder, ["08", "09", "10"].map((n) => join(folder, `a-${n}.tar`))];
    const [first, ...others] = await Promise.all(all.map((file) => load({ file })));
    expect(samplesOf(first!)).toEqual(expected(7).flatMap((sample) => [sample, sample, sample]));
    for (const other of others) expect(other).toEqual(first);
  });

  test("for testing may be in separate shards", async () => {
    const { train, test: held } = await load({ file: place("gnu"), testFile: [place("v7")] });
    expect([train.count, held.count]).toEqual([8, 7]);
  });

  test("are split the same in any location", async () => {
    copyFileSync(place("gnu"), join(folder, "gnu.tar"));
    expect(await load({ file: join(folder, "gnu.tar") })).toEqual(await load({ file: place("gnu") }));
  });

  test("without image or label are reported, or skipped and counted; folders and links are ignored", async () => {
    await expect(load({ file: place("others") })).rejects.toThrow(
      /others\.tar\/001 has no image, or no label in \.cls; set image and label to the part of the file names after the key/,
    );
    const { remarks, train } = await load({ file: place("others"), testFile: place("others") }, { skipDamaged: true });
    expect(train.count).toBe(2);
    const lost = `${place("others")}/001`;
    expect(remarks).toContain(`2 samples without an image or a label were skipped: ${lost}, ${lost}`);
  });

  test.each<[string, ShardOptions, RegExp]>([
    ["a missing label", { file: place("gnu"), label: "txt" }, /gnu\.tar\/000 has no image, or no label in \.txt/],
    ["a missing field", { file: place("gnu"), label: "json", field: "x" }, /no label in \.json/],
    [
      "a label that is not JSON",
      { file: place("gnu"), label: "png", image: "png" },
      /gnu\.tar\/000 has no image, or no label in \.png/,
    ],
    ["no shard", { file: "/nowhere/{0..1}.tar" }, /\/nowhere\/0\.tar cannot be read \(ENOENT/],
    ["numbers backwards", { file: "a{9..1}.tar" }, /\{9\.\.1\} expands to -7 shards; write the lower number first/],
    [
      "a file that is not a tar",
      { file: fileURLToPath(new URL("image-shards.test.ts", import.meta.url)) },
      /is not a tar; give/,
    ],
  ])("are rejected for %s", async (_, shards, message) => {
    await expect(load(shards)).rejects.toThrow(message);
  });

  test("decoded on demand are the same", async () => {
    const eager = await load({ file: place("pax") });
    const lazy = await openImageShards({ ...options, shards: { file: place("pax") }, cacheMegabytes: 0 });
    const values: number[] = [];
    for await (const { batch } of readEvaluationBatches(lazy.train, {
      batchSize: 1,
      rank: 0,
      worldSize: 1,
      damaged: () => undefined,
    }))
      values.push(batch["inputs"]!.data[0]! as number);
    expect(values).toEqual(
      Array.from({ length: eager.train.count }, (_, i) => eager.train.fields["inputs"]!.bytes[4 * i]),
    );
  });

  test("on a web server are the same", async () => {
    const bytes = readFileSync(place("pax"));
    const server = createServer((request, response) => {
      const [, begin, end] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "")!;
      response
        .writeHead(206, { "content-range": `bytes ${begin}-${end}/${bytes.length}`, etag: '"1"' })
        .end(bytes.subarray(Number(begin), Number(end) + 1));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/pax.tar?key=secret`;
      const found = await load({ file: address });
      expect(samplesOf(found)).toEqual(expected(8));
      expect(found).toEqual(await load({ file: place("pax") }));
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});

const entriesOf = async (path: string): Promise<TarEntry[]> => {
  const source = await openSource(path, "", "tar");
  try {
    const entries: TarEntry[] = [];
    for await (const entry of tarEntries(new SourcePieces(source))) entries.push(entry);
    return entries;
  } finally {
    source.close();
  }
};

describe("a tar", () => {
  test("that is truncated in a file, or has a flipped bit in a header, is reported", async () => {
    const whole = readFileSync(place("gnu"));
    const all = await entriesOf(place("gnu"));
    const path = join(folder, "damaged.tar");
    const lastEnd = all.at(-1)!.begin + all.at(-1)!.sizeBytes;
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 513, max: lastEnd - 1 }), async (length) => {
        writeFileSync(path, whole.subarray(0, length));
        const isInFile = all.some(({ begin, sizeBytes }) => begin - 512 < length && length < begin + sizeBytes);
        const told = /damaged\.tar ends after \d+ bytes, in the middle of a file; copy/;
        if (isInFile) await expect(entriesOf(path)).rejects.toThrow(told);
        // A tar file cut between two files is a valid shorter tar file, except after the header of a long name.
        else
          await entriesOf(path).then(
            (entries) => expect(entries).toEqual(all.filter(({ begin, sizeBytes }) => begin + sizeBytes <= length)),
            ({ message }: Error) => expect(message).toMatch(told),
          );
      }),
      { numRuns: 40 },
    );
    await fc.assert(
      fc.asyncProperty(fc.nat(all.length - 1), fc.nat(511), fc.nat(7), async (file, byte, bit) => {
        const changed = Uint8Array.from(whole);
        changed[all[file]!.begin - 512 + byte]! ^= 1 << bit;
        writeFileSync(path, changed);
        // The two bytes after the digits of the checksum are ignored, and a leading zero may also be a space.
        if (byte >= 148 && byte < 156) {
          const entries = await entriesOf(path).catch(({ message }: Error) => message);
          if (typeof entries === "string") expect(entries).toMatch(/damaged\.tar is (damaged at byte \d+|not a tar)/);
          else expect(entries).toEqual(all);
        } else await expect(entriesOf(path)).rejects.toThrow(/damaged\.tar is (damaged at byte \d+|not a tar)/);
      }),
      { numRuns: 40, examples: [[0, 155, 0]] },
    );
  });
});

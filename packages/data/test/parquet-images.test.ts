import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Samples } from "../src/index.ts";
import {
  findInParquet,
  type FoundImages,
  type Images,
  loadFoundImages,
  openFoundImages,
  type ParquetOptions,
  readBatch,
} from "../src/node.ts";

// Folder of files written by pyarrow, see parquet-images/make.py.

const samples = join(import.meta.dirname, "parquet-images");
const place = (name: string): string => join(samples, `${name}.parquet`);
const [first, second, heldOut] = ["train-00000-of-00002", "train-00001-of-00002", "test-00000-of-00001"].map(place);
const fileOf = (name: string): Buffer => readFileSync(join(import.meta.dirname, "images", name));

const find = (options: ParquetOptions, more = {}): Promise<FoundImages> =>
  findInParquet(options, { testFraction: 0.4, skipDamaged: false, ...more });

/** Returns class and bytes of each image, in the order of files and rows. */
const rowsOf = ({ classes, train, test: held }: FoundImages): [string, Buffer][] =>
  [...train, ...held]
    .map(({ path, entry, label, bytes }) => ({ at: `${path} ${entry!.name}`, label, bytes }))
    .sort((one, other) => (one.at < other.at ? -1 : 1))
    .map(({ label, bytes }) => [classes[label]!, Buffer.from(bytes!)]);

const expected: readonly [string, string][] = [
  ["cat", "plain.jpg"],
  ["dog", "plain.png"],
  ["owl", "turned.jpg"],
  ["cat", "grey.jpg"],
  ["dog", "plain.webp"],
  ["owl", "palette.gif"],
  ["dog", "plain.jpg"],
];
const withBytes = (rows: readonly (readonly [string, string])[]): [string, Buffer][] =>
  rows.map(([label, name]) => [label, fileOf(name)]);

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "skein-parquet-"))));
afterEach(() => rmSync(folder, { recursive: true }));

describe("images in Parquet", () => {
  test("equal the written images, with the names of their classes", async () => {
    const found = await find({ file: [first!, second!], testFile: heldOut });
    expect(found.classes).toEqual(["cat", "dog", "owl"]);
    expect([found.train.length, found.test.length]).toEqual([7, 2]);
    expect(rowsOf({ ...found, test: [] })).toEqual(withBytes(expected));
    expect(rowsOf({ ...found, train: [] })).toEqual(
      withBytes([
        ["cat", "plain.png"],
        ["owl", "grey.jpg"],
      ]),
    );
  });

  test("in a folder are split by file names, otherwise by rows", async () => {
    for (const file of [first!, second!, heldOut!]) copyFileSync(file, join(folder, file.split("/").at(-1)!));
    const parted = await find({ file: folder });
    expect([parted.train.length, parted.test.length]).toEqual([7, 2]);
    rmSync(join(folder, "test-00000-of-00001.parquet"));
    const cut = await find({ file: join(folder, "train-{00000..00001}-of-00002.parquet") });
    expect(cut.test.length).toBeGreaterThan(0);
    expect(rowsOf(cut)).toEqual(withBytes(expected));
  });

  test("may be plain bytes, with labels of other types", async () => {
    const colours = ["red", "blue", "red", "red", "blue", "red", "blue"];
    const named = await find({ file: place("named") });
    expect(named.classes).toEqual(["blue", "red"]);
    expect(rowsOf(named)).toEqual(withBytes(expected.map(([, name], i) => [colours[i]!, name])));
    const plain = await find({ file: place("plain") });
    expect(plain.classes).toEqual(["7", "8"]);
    expect(rowsOf(plain)).toEqual(withBytes(expected.map(([, name], i) => [i % 2 ? "8" : "7", name])));
  });

  test("are decoded equally before or during training, and named in errors by their rows", async () => {
    const options = {
      size: [8, 12],
      channels: 3,
      fit: "cover",
      testFraction: 0.4,
      skipDamaged: false,
      from: import.meta.url,
    } as const;
    const found = await find({ file: [first!, second!], testFile: heldOut });
    const [eager, lazy] = [
      await loadFoundImages(found, options),
      await openFoundImages(found, { ...options, cacheMegabytes: 0 }),
    ];
    const all = async ({ train }: Images<Samples>): Promise<unknown> => {
      const { inputs, labels } = await readBatch(train, [0, 1, 2, 3, 4, 5, 6]);
      return [inputs!.toNumbers(), labels!.toNumbers()];
    };
    expect(await all(lazy)).toEqual(await all(eager));
    const broken = { ...found, train: found.train.map((image) => ({ ...image, bytes: image.bytes!.slice(0, 20) })) };
    await expect(loadFoundImages(broken, options)).rejects.toThrow(/train-0000\d-of-00002\.parquet\/row \d/);
    const left = await loadFoundImages(
      { ...broken, train: [...broken.train, found.train[0]!] },
      { ...options, skipDamaged: true },
    );
    expect(left.train.count).toBe(1);
    expect(left.remarks.join("\n")).toContain("7 damaged images were skipped");
  });

  test("are read from a web server in ranges", async () => {
    const bytes = readFileSync(first!);
    const server = createServer((request, response) => {
      const [begin, end] = /bytes=(\d+)-(\d+)/.exec(request.headers.range!)!.slice(1).map(Number) as [number, number];
      response.writeHead(206, { "content-range": `bytes ${begin}-${end}/${bytes.length}`, etag: '"1"' });
      response.end(bytes.subarray(begin, end + 1));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/train.parquet?key=1`;
      expect(rowsOf(await find({ file: address, testFile: [heldOut!] }))).toHaveLength(6);
    } finally {
      server.close();
    }
  });
});

describe("errors", () => {
  test("rows without an image or a label, which can be skipped and counted", async () => {
    const linked = { file: place("linked") };
    await expect(find(linked)).rejects.toThrow(/linked\.parquet, row 0 has no image bytes in column image/);
    const found = await find({ file: place("unlabelled") }, { skipDamaged: true });
    expect(found.incomplete!.map((each) => each.slice(-5))).toEqual(["row 5", "row 6", "row 7"]);
    expect(rowsOf(found)).toEqual(withBytes(expected.slice(0, 5)));
  });

  test.each([
    [{ image: "img" }, "has no column img; its columns: id, image, label; set image and label"],
    [{ label: "class" }, "has no column class"],
    [{ image: "id" }, "has no image bytes in column id"],
    [{ file: [first!, place("named")] }, "named.parquet lists other classes than"],
    [{ file: first!, testFile: place("plain") }, "plain.parquet/row 0 is of class 7, but no training sample is"],
  ])("%o", async (options, message) => {
    await expect(find({ file: first!, ...options })).rejects.toThrow(message);
  });

  test("files of other formats, and folders without Parquet files", async () => {
    writeFileSync(join(folder, "no.parquet"), "PAR1 and nothing else PAR1");
    await expect(find({ file: folder })).rejects.toThrow(/no\.parquet cannot be read as Parquet /);
    rmSync(join(folder, "no.parquet"));
    await expect(find({ file: folder })).rejects.toThrow(/holds no \.parquet files/);
  });
});

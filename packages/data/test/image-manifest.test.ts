import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { gatherBatch, type Records } from "../src/index.ts";
import { type ImageOptions, type Images, loadImageFolder, loadImageManifest } from "../src/node.ts";
import { readManifest } from "../src/node/read-manifest.ts";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "skein-manifest-"))));
afterEach(() => rmSync(folder, { recursive: true }));

const put = (place: string): void => {
  mkdirSync(join(folder, place, ".."), { recursive: true });
  const sample = place.includes("dog") ? "plain.png" : "grey-16.png";
  copyFileSync(join(import.meta.dirname, "images", sample), join(folder, place));
};

const write = (name: string, text: string): string => {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
};

const options: ImageOptions = {
  size: [4, 4],
  channels: 3,
  fit: "cover",
  testFraction: 0.4,
  skipDamaged: false,
  from: import.meta.url,
};

const load = (text: string, more: Partial<ImageOptions> = {}): Promise<Images> =>
  loadImageManifest({ file: write("labels.csv", text), ...options, ...more });

const all = (records: Records): readonly number[][] => {
  const batch = gatherBatch(
    records,
    Array.from({ length: records.count }, (_, i) => i),
  );
  return [batch["inputs"]!.toNumbers() as number[], batch["labels"]!.toNumbers() as number[]];
};

const quoted = (text: string): string => (/[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);

describe("images listed in a file", () => {
  test("equal the same images in folders, for CSV and JSON Lines", async () => {
    const places = ["train/cat/a.png", "train/dog/b.png", "test/cat/c.png", "test/dog/d.png"];
    for (const place of places) put(place);
    const rows = places.map((path) => {
      const [split, label] = path.split("/");
      return { path, label: label!, split: split! };
    });
    const expected = await loadImageFolder({ folder, ...options });
    const csv = `\uFEFFid,path,label,split\r\n${rows.map((row, i) => [i, row.path, row.label, row.split].join(",")).join("\r\n")}\r\n`;
    const lines = rows.map((row) => JSON.stringify(row)).join("\n");
    for (const file of [write("labels.csv", csv), write("labels.jsonl", lines)]) {
      const found = await loadImageManifest({ file, ...options });
      expect(found.classes).toBe(2);
      expect(all(found.train)).toEqual(all(expected.train));
      expect(all(found.test)).toEqual(all(expected.test));
      expect(found.remarks).toEqual(expected.remarks);
    }
  });

  test("with any names are found, in the order of class numbers", () => {
    const names = fc.uniqueArray(fc.string({ unit: fc.constantFrom(..."ab ,\"'é\n\r;"), minLength: 1 }), {
      minLength: 3,
      maxLength: 8,
    });
    fc.assert(
      fc.property(names, (drawn) => {
        const paths = drawn.map((name, i) => `${i}${name}x.png`);
        const rows = paths.map((path, i) => `${quoted(path)},${i * 5},${i === 0 ? "Val" : "train"}`);
        const found = readManifest(write("labels.csv", `path,label,split\n${rows.join("\n")}\n`), 0.5);
        expect(found.classes).toEqual(paths.map((_, i) => String(i * 5)));
        expect(found.test.map(({ path, label }) => [path, label])).toEqual([[join(folder, paths[0]!), 0]]);
        expect(found.train.toSorted((one, other) => one.label - other.label).map(({ path }) => path)).toEqual(
          paths.slice(1).map((path) => join(folder, path)),
        );
      }),
      { numRuns: 60 },
    );
  });

  test("without a split are split by their paths, independent of other images", () => {
    const rows = (count: number): string =>
      Array.from({ length: count }, (_, i) => `${i}.png,${i % 2 === 0 ? "even" : "odd"}\n`).join("");
    const testPaths = (count: number): Set<string> =>
      new Set(readManifest(write("labels.csv", `path,label\n${rows(count)}`), 0.4).test.map(({ path }) => path));
    const [few, many] = [testPaths(30), testPaths(60)];
    expect(few.size).toBeGreaterThan(3);
    expect([...few].filter((path) => !many.has(path))).toEqual([]);
  });

  test.each<[string, string, RegExp]>([
    ["an empty file", "", /labels\.csv lists no images; give a \.csv or \.jsonl/],
    ["only a header", "path,label\n", /lists no images/],
    ["a column twice", "path,label,label\na,b,c\n", /labels\.csv:1: the first line has the column label twice/],
    ["other columns", "file,label\na,b\n", /labels\.csv:1: the first line has the columns file, label, but no path/],
    ["a row that is too long", "path,label\na,b\nc,d,e\n", /labels\.csv:3: invalid CSV \(Invalid Record Length/],
    ["an open quote", 'path,label\na,b\n"c,d\n', /labels\.csv:\d: invalid CSV \(Quote Not Closed/],
    ["no label", "path,label\na.png,\n", /labels\.csv:2: label is "", but must be a text/],
    ["another split", "path,label,split\na,b,dev\n", /labels\.csv:2: split is "dev", but must be train, test or val/],
    ["an image named twice", "path,label\na,b\n./a,c\n", /labels\.csv:3: \S+\/a is already listed at \S+:2; remove/],
    ["one class", "path,label\na,b\nc,b\n", /all 2 images are of class b; list images of /],
    ["one part", "path,label,split\na,b,train\nc,d,train\n", /of 2 images 2 are for training and 0 for testing/],
    [
      "a missing image",
      "path,label,split\na,b,train\nc,d,test\n",
      /labels\.csv:2: \S+\/a cannot be read \(ENOENT\); check/,
    ],
  ])("and %s are reported with file and line", async (_, text, line) => {
    const { message } = await load(text).then(
      () => new Error("nothing was thrown"),
      (error: Error) => error,
    );
    expect(message).toMatch(line);
    expect(message).not.toContain("\n");
  });

  test("in damaged lines of JSON, or with a split on some lines only, are reported with file and line", () => {
    const read = (text: string) => () => readManifest(write("labels.jsonl", text), 0.5);
    expect(read('{"path": "a", "label": 1}\n{')).toThrow(/labels\.jsonl:2: the line is not valid JSON; write/);
    expect(read('{"path": "a"}')).toThrow(/labels\.jsonl:1: label is missing, but must be a text/);
    expect(read('{"path": ["a"], "label": 1}')).toThrow(/:1: path is \["a"\], but must be a text/);
    expect(read('{"path": "a", "label": 1, "split": "train"}\n{"path": "b", "label": 2}')).toThrow(
      /:2: this image has no split, but the first image has one/,
    );
    expect(() => readManifest(folder, 0.5)).toThrow("regular file; give a .csv or .jsonl");
  });

  test("that are damaged are skipped if requested", async () => {
    for (const place of ["cat.png", "dog.png", "other-dog.png"]) put(place);
    const text = "path,label,split\ncat.png,cat,train\ndog.png,dog,train\nno.png,dog,train\nother-dog.png,dog,test\n";
    const { train, remarks } = await load(text, { skipDamaged: true });
    expect(train.count).toBe(2);
    expect(remarks[1]).toBe(`1 damaged images were skipped: ${join(folder, "no.png")}`);
  });
});

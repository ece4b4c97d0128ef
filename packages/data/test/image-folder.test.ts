import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { gatherBatch, type Records } from "../src/index.ts";
import { loadImageFolder, Prefetcher } from "../src/node.ts";
import type { ImageOptions } from "../src/node/load-images.ts";

/**
 * Folder of images made by Pillow, see make.py. The left half is red and the right half blue; in gray images, white and
 * black.
 */
const samples = join(import.meta.dirname, "images");
const names = readdirSync(samples).filter((name) => !name.endsWith(".py"));

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "skein-images-"))));
afterEach(() => rmSync(folder, { recursive: true }));

const put = (place: string, sample: string): void => {
  mkdirSync(join(folder, place, ".."), { recursive: true });
  copyFileSync(join(samples, sample), join(folder, place));
};

const load = (more: Partial<ImageOptions & { readonly folder: string }> = {}) =>
  loadImageFolder({
    folder,
    size: [8, 12],
    channels: 3,
    fit: "cover",
    testFraction: 0.3,
    skipDamaged: false,
    from: import.meta.url,
    ...more,
  });

/** Writes images of two classes into training and test folders. */
const putBoth = (): void => {
  for (const part of ["train", "test"]) {
    put(`${part}/cat/a.jpg`, "plain.jpg");
    put(`${part}/dog/b.png`, "plain.png");
  }
};

/** Returns the first sample of a class. */
const firstOf = (records: Records, label: number): number => {
  const all = gatherBatch(
    records,
    Int32Array.from({ length: records.count }, (_, i) => i),
  );
  return all["labels"]!.toNumbers().indexOf(label);
};

const pixelsOf = (records: Records, index: number): readonly number[] =>
  gatherBatch(records, [index])["inputs"]!.toNumbers();

describe("images in folders by class", () => {
  test("of all supported kinds are rotated, flattened and resized", async () => {
    for (const name of names) put(`train/${name.replace(".", "-")}/${name}`, name);
    for (const name of names.slice(0, 2)) put(`val/${name.replace(".", "-")}/${name}`, name);
    const { train, test: heldOut, classes } = await load();
    expect([train.count, heldOut.count, classes]).toEqual([names.length, 2, names.length]);
    expect(train.fields["inputs"]!.bytes.buffer).toBeInstanceOf(SharedArrayBuffer);
    const [left, right] = [0, 11 * 3];
    for (const [label, name] of names.entries()) {
      const pixels = pixelsOf(train, firstOf(train, label));
      const isGrey = name.startsWith("grey");
      const blue = name === "transparent.png" ? 0 : isGrey ? 0 : 255;
      const near = (at: number, colour: readonly number[]): void =>
        colour.forEach((value, channel) =>
          expect(Math.abs(pixels[at + channel]! - value), `${name} ${at} ${channel}`).toBeLessThan(3),
        );
      near(left, isGrey ? [255, 255, 255] : [255, 0, 0]);
      near(right, [0, 0, blue]);
    }
  });

  test("are cropped, padded with black, or stretched; also gray, and one pixel large", async () => {
    putBoth();
    const square = { size: [6, 6] } as const;
    const isRed = async (fit: ImageOptions["fit"]): Promise<boolean> => {
      const { train } = await load({ ...square, fit });
      const [red, green, blue] = pixelsOf(train, firstOf(train, 1));
      return red! > 240 && green! < 15 && blue! < 15;
    };
    expect(await isRed("cover")).toBe(true);
    expect(await isRed("contain")).toBe(false);
    expect(await isRed("stretch")).toBe(true);
    const grey = await load({ size: [1, 1], channels: 1 });
    expect(grey.train.fields["inputs"]!.shape).toEqual([1, 1, 1]);
    expect(pixelsOf(grey.train, 0)).toHaveLength(1);
  });

  test("without test folders are split by their names, independent of other files", async () => {
    const places = (from: number, to: number): string[] =>
      Array.from({ length: to - from }, (_, i) => `${(from + i) % 2 ? "cat" : "dog"}/näme ${from + i}.png`);
    for (const place of places(0, 30)) put(place, "plain.png");
    const before = await load();
    expect(before.train.count + before.test.count).toBe(30);
    expect(before.test.count).toBeGreaterThan(3);
    for (const place of places(30, 36)) put(place, "plain.jpg");
    put("cat/deep/er/x.PNG", "plain.png");
    put("cat/.hidden.png", "plain.png");
    put("cat/notes.txt", "make.py");
    symlinkSync(folder, join(folder, "cat/loop"));
    const after = await load();
    expect(after.train.count + after.test.count).toBe(37);
    expect(after.test.count - before.test.count).toBeLessThan(7);
    expect(after.test.count).toBeGreaterThanOrEqual(before.test.count);
    expect(after.remarks).toEqual([
      `${after.train.count} training images, ${after.test.count} test images, 2 classes: cat, dog`,
      expect.stringMatching(/^1 file is not an image: .*notes\.txt$/),
    ]);
  });

  test.each<[string, Uint8Array]>([
    ["empty", new Uint8Array()],
    ["truncated", readFileSync(join(samples, "plain.jpg")).subarray(0, 500)],
    ["no image", new TextEncoder().encode("not an image at all")],
  ])("that are damaged are named, or skipped and counted: %s", async (_, bytes) => {
    putBoth();
    put("train/cat/c.png", "plain.png");
    writeFileSync(join(folder, "train/cat/b damaged.jpg"), bytes);
    await expect(load()).rejects.toThrow(
      /train.cat.b damaged\.jpg cannot be decoded \(.+\); restore it, .*skipDamaged: true$/,
    );
    const { train, remarks } = await load({ skipDamaged: true });
    expect(gatherBatch(train, [0, 1, 2])["labels"]!.toNumbers().toSorted()).toEqual([0, 0, 1]);
    // later images have moved up: the next three are red on the left
    for (let i = 0; i < 3; i++) expect(pixelsOf(train, i)[0]).toBeGreaterThan(240);
    expect(remarks[1]).toMatch(/^1 damaged images were skipped: .*b damaged\.jpg$/);
    for (const name of ["a.jpg", "c.png"]) writeFileSync(join(folder, "train/cat", name), bytes);
    writeFileSync(join(folder, "train/dog/b.png"), bytes);
    await expect(load({ skipDamaged: true })).rejects.toThrow(/none of 4 images can be decoded/);
  });

  test("are shuffled, so that the first and last images have all classes, and the first damaged image is named", async () => {
    for (let i = 0; i < 40; i++) for (const kind of ["a", "b", "c"]) put(`train/${kind}/${i}.png`, "plain.png");
    for (const kind of ["a", "b", "c"]) put(`Valid/${kind}/1.png`, "plain.png");
    const { train } = await load({ size: [1, 1] });
    const labels = gatherBatch(
      train,
      Int32Array.from({ length: 120 }, (_, i) => i),
    )["labels"]!.toNumbers();
    for (const part of [labels.slice(0, 24), labels.slice(-24)]) expect(new Set(part).size).toBe(3);
    for (let i = 0; i < 10; i++) writeFileSync(join(folder, `train/b/${i}.png`), "");
    const named = await Promise.all(
      [1, 2, 3].map(() =>
        load({ size: [1, 1] }).then(
          () => "",
          (error: Error) => error.message,
        ),
      ),
    );
    expect(new Set(named).size).toBe(1);
    expect(named[0]).toMatch(/train.b.\d\.png cannot be decoded/);
  });

  test("in another layout are rejected in one line", async () => {
    await expect(load({ folder: join(folder, "nowhere") })).rejects.toThrow(
      /nowhere cannot be read \(ENOENT\); give a folder/,
    );
    await expect(load()).rejects.toThrow(
      /holds no folders, but at least two folders are required, one per class of images; cre/,
    );
    put("cat/a.jpg", "plain.jpg");
    await expect(load()).rejects.toThrow(/holds one folder, cat, but at least two folders are required, one per class/);
    mkdirSync(join(folder, "dog"));
    await expect(load()).rejects.toThrow(/dog holds no images \(\.avif, /);
    rmSync(join(folder, "cat"), { recursive: true });
    rmSync(join(folder, "dog"), { recursive: true });
    put("train/cat/a.jpg", "plain.jpg");
    await expect(load()).rejects.toThrow(/has a folder train, but no folder of test images; add a folder test, val,/);
    putBoth();
    put("test/horse/a.jpg", "plain.jpg");
    await expect(load()).rejects.toThrow(/test.horse is a class without training images; the classes are cat, dog/);
  });
});

test("augmented batches are independent of the number of ranks and of the position where training continues", async () => {
  const bytes = Uint8Array.from({ length: 24 * 4 * 4 * 3 }, (_, i) => i % 255);
  const image = { bytes, offsetBytes: 0, strideBytes: 48, dtype: "u8", shape: [4, 4, 3] } as const;
  const labels = { bytes, offsetBytes: 0, strideBytes: 1, dtype: "u8", shape: [] } as const;
  const records: Records = { count: 24, fields: { labels, inputs: image } };
  const augmentation = { cropPadding: 2, flip: true };
  const batchesOf = async (rank: number, worldSize: number, from: number, count: number): Promise<number[][]> => {
    const position = { epoch: Math.floor(from / 3), step: from % 3 };
    const options = { batchSize: 8, seed: 5, rank, worldSize, position, augmentation, slots: 2 };
    const prefetcher = new Prefetcher(records, options);
    try {
      const batches: number[][] = [];
      for (let i = 0; i < count; i++) batches.push((await prefetcher.next()).batch["inputs"]!.toNumbers());
      return batches;
    } finally {
      await prefetcher.close();
    }
  };
  const whole = await batchesOf(0, 1, 0, 6);
  const halves = await Promise.all([batchesOf(0, 2, 0, 6), batchesOf(1, 2, 0, 6)]);
  expect(halves[0]!.map((half, i) => [...half, ...halves[1]![i]!])).toEqual(whole);
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 0, max: 5 }), async (from) => {
      expect(await batchesOf(0, 1, from, 6 - from)).toEqual(whole.slice(from));
    }),
    { numRuns: 4 },
  );
  const plain = gatherBatch(
    records,
    Int32Array.from({ length: 24 }, (_, i) => i),
  )["inputs"]!.toNumbers();
  expect(whole.slice(0, 3).flat().toSorted()).not.toEqual(plain.toSorted());
});

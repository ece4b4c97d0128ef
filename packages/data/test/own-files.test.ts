import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { NdArray } from "@skein/tensor-core";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { arrayRecords, gatherBatch, imageRecords, mnistFiles, shareRecords, textRecords } from "../src/index.ts";
import { loadIdx } from "../src/node.ts";

/** Returns the bytes of an IDX file of unsigned bytes. */
const idx = (shape: readonly number[], data: readonly number[]): Uint8Array => {
  const file = new Uint8Array(4 + 4 * shape.length + data.length);
  const view = new DataView(file.buffer);
  file.set([0, 0, 8, shape.length]);
  shape.forEach((size, dim) => view.setUint32(4 + 4 * dim, size));
  file.set(data, 4 + 4 * shape.length);
  return file;
};

const named = (bytes: Uint8Array): { readonly name: string; readonly bytes: Uint8Array } => ({ name: "file", bytes });

describe("images from IDX files", () => {
  test("of any size, with or without channels, keep their pixels, and have the number of classes given by the labels", () => {
    const sizes = fc.record({
      count: fc.integer({ min: 1, max: 4 }),
      height: fc.integer({ min: 1, max: 5 }),
      width: fc.integer({ min: 1, max: 5 }),
      channels: fc.option(fc.integer({ min: 1, max: 4 })),
      labels: fc.array(fc.integer({ min: 0, max: 255 }), { minLength: 4, maxLength: 4 }),
    });
    fc.assert(
      fc.property(sizes, ({ count, height, width, channels, labels }) => {
        const shape = [height, width, ...(channels === null ? [] : [channels])];
        const pixels = Array.from({ length: count * height * width * (channels ?? 1) }, (_, i) => (7 * i) % 256);
        const taken = labels.slice(0, count);
        const { records, classes } = imageRecords(named(idx([count, ...shape], pixels)), named(idx([count], taken)));
        expect(classes).toBe(Math.max(...taken) + 1);
        const batch = gatherBatch(
          records,
          Array.from({ length: count }, (_, i) => i),
        );
        expect(batch["inputs"]!.shape).toEqual([count, height, width, channels ?? 1]);
        expect(batch["inputs"]!.toNumbers()).toEqual(pixels);
        expect(batch["labels"]!.toNumbers()).toEqual(taken);
      }),
    );
  });

  test("rejects labels outside the classes, and files without images", () => {
    const images = named(idx([2, 1, 1], [1, 2]));
    expect(() => imageRecords(images, named(idx([2], [0, 5])), { classes: 5 })).toThrow(
      "label 1 is 5, but classes are 0 to 4",
    );
    expect(imageRecords(images, named(idx([2], [0, 5])), { classes: 26 }).classes).toBe(26);
    expect(() => imageRecords(named(idx([0, 2, 2], [])), named(idx([0], [])))).toThrow("holds 0 images of 2×2×1");
  });

  describe("in a folder", () => {
    let folder: string;
    beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "skein-idx-"))));
    afterEach(() => rmSync(folder, { recursive: true }));
    const write = (name: string, bytes: Uint8Array): void => writeFileSync(join(folder, name), bytes);

    test("are found by the names of MNIST or by given names, plain or compressed, with the classes of both parts", () => {
      write(`${mnistFiles.train.images}.gz`, gzipSync(idx([2, 2, 1], [1, 2, 3, 4])));
      write(mnistFiles.train.labels, idx([2], [0, 1]));
      write("held.idx.gz", gzipSync(idx([1, 2, 1], [5, 6])));
      write("held-labels.idx", idx([1], [4]));
      const {
        train,
        test: heldOut,
        classes,
      } = loadIdx({ folder, test: { images: "held.idx.gz", labels: "held-labels.idx" } });
      expect([train.count, heldOut.count, classes]).toEqual([2, 1, 5]);
      expect(() => loadIdx({ folder })).toThrow(
        /t10k-images-idx3-ubyte cannot be read .*; set folder, and train and test to its files/,
      );
      write("wide.idx", idx([1, 1, 3], [5, 6, 7]));
      expect(() => loadIdx({ folder, test: { images: "wide.idx", labels: "held-labels.idx" } })).toThrow(
        /holds images of 2×1×1, but \S+wide\.idx of 1×3×1; training and test images must have the same size/,
      );
    });
  });
});

describe("samples from arrays", () => {
  test("are the rows of the arrays", () => {
    const inputs = NdArray.from([1, 2, 3, 4, 5, 6], [3, 2]);
    const batch = gatherBatch(arrayRecords({ inputs, labels: NdArray.from([7, 8, 9], [3], "i32") }), [2, 0]);
    expect(batch["inputs"]!.toNumbers()).toEqual([5, 6, 1, 2]);
    expect(batch["labels"]!.toNumbers()).toEqual([9, 7]);
  });

  test("of different counts, and no arrays, are rejected", () => {
    const two = NdArray.from([1, 2], [2]);
    expect(() => arrayRecords({ inputs: two, labels: NdArray.from([1, 2, 3], [3]) })).toThrow(
      /field "labels" is \[3\], field "inputs" \[2\]/,
    );
    expect(() => arrayRecords({ inputs: NdArray.from([1], []) })).toThrow(/the first dimension counts the samples/);
    expect(() => arrayRecords({})).toThrow("was given no arrays");
  });
});

test("shared samples keep their values, fields over one buffer still share one, and shared memory is not copied again", () => {
  const text = textRecords(new TextEncoder().encode("abcdefghij").subarray(1), 3);
  const shared = shareRecords(text);
  const { inputs, labels } = shared.fields;
  expect(inputs!.bytes.buffer).toBeInstanceOf(SharedArrayBuffer);
  expect(labels!.bytes.buffer).toBe(inputs!.bytes.buffer);
  const all = Array.from({ length: text.count }, (_, i) => i);
  for (const field of ["inputs", "labels"])
    expect(gatherBatch(shared, all)[field]!.toNumbers()).toEqual(gatherBatch(text, all)[field]!.toNumbers());
  expect(shareRecords(shared).fields["inputs"]!.bytes.buffer).toBe(inputs!.bytes.buffer);
});

import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DataError, mnistFiles } from "../src/index.ts";
import { loadFashionMnist } from "../src/node.ts";
import { fashionMnistFolder, requirePublished } from "../src/node/load-fashion-mnist.ts";

const images = (count: number, first: number): Uint8Array => {
  const pixels = Uint8Array.from({ length: count * 784 }, (_, i) => (first + i) % 251);
  return Uint8Array.from([0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, 28, 0, 0, 0, 28, ...pixels]);
};
const labels = (...values: readonly number[]): Uint8Array =>
  Uint8Array.from([0, 0, 8, 1, 0, 0, 0, values.length, ...values]);

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "skein-fashion-mnist-"));
  writeFileSync(join(folder, `${mnistFiles.train.images}.gz`), gzipSync(images(3, 7)));
  writeFileSync(join(folder, `${mnistFiles.train.labels}.gz`), gzipSync(labels(9, 0, 4)));
  writeFileSync(join(folder, mnistFiles.test.images), images(2, 100));
  writeFileSync(join(folder, mnistFiles.test.labels), labels(1, 2));
});
afterEach(() => rmSync(folder, { recursive: true }));

describe("loadFashionMnist", () => {
  test("reads plain and compressed files into shared memory", () => {
    const { train, test: held } = loadFashionMnist({ folder });
    expect([train.count, held.count]).toEqual([3, 2]);
    expect([...train.fields["labels"]!.bytes]).toEqual([9, 0, 4]);
    expect([...held.fields["labels"]!.bytes]).toEqual([1, 2]);
    expect(train.fields["inputs"]!.shape).toEqual([28, 28, 1]);
    expect(Array.from(train.fields["inputs"]!.bytes.slice(0, 784))).toEqual(
      Array.from({ length: 784 }, (_, i) => (7 + i) % 251),
    );
    for (const { bytes } of [...Object.values(train.fields), ...Object.values(held.fields)])
      expect(bytes.buffer).toBeInstanceOf(SharedArrayBuffer);
  });

  test("names a missing, truncated or altered file and the cure", () => {
    const path = join(folder, `${mnistFiles.train.images}.gz`);
    writeFileSync(path, gzipSync(images(3, 7)).subarray(0, 60));
    expect(() => loadFashionMnist({ folder })).toThrow(DataError);
    expect(() => loadFashionMnist({ folder })).toThrow(
      /^\S+gz cannot be decompressed \(.+\); the folder must hold the four IDX files/,
    );
    writeFileSync(path, gzipSync(images(3, 7).subarray(0, 700)));
    expect(() => loadFashionMnist({ folder })).toThrow(
      `${path} has 700 bytes, but its header [3, 28, 28] requires 2368`,
    );
    writeFileSync(path, gzipSync(images(2, 7)));
    expect(() => loadFashionMnist({ folder })).toThrow(`${path} holds 2 images`);
    rmSync(path);
    expect(() => loadFashionMnist({ folder })).toThrow(
      /train-images-idx3-ubyte cannot be read \(.+\); the folder must hold/,
    );
  });

  test("distinguishes an altered file from the published one", () => {
    const altered = { name: "labels.gz", bytes: labels(1, 2) };
    expect(() => requirePublished(mnistFiles.test.labels, altered)).toThrow(
      /^labels.gz has SHA-256 [0-9a-f]{16}…, but the published file has 0402a96d92fd2663…; the file was altered: install it again with/,
    );
  });

  test.runIf(!existsSync(fashionMnistFolder))("tells how to install the missing package", () => {
    expect(() => loadFashionMnist()).toThrow(
      `data set fashion-mnist was not found: there is no ${fashionMnistFolder}; install it with: apt-get install dataset-fashion-mnist, or give a folder`,
    );
  });

  const installed = existsSync(fashionMnistFolder);
  test.skipIf(!installed)(
    `the published files${installed ? "" : " (skipped: package dataset-fashion-mnist is not installed)"}`,
    () => {
      const { train, test: held } = loadFashionMnist();
      expect([train.count, held.count]).toEqual([60_000, 10_000]);
      const perClass = (bytes: Uint8Array): number[] => {
        const counts = Array<number>(10).fill(0);
        for (const label of bytes) counts[label]!++;
        return counts;
      };
      expect(perClass(train.fields["labels"]!.bytes)).toEqual(Array(10).fill(6000));
      expect(perClass(held.fields["labels"]!.bytes)).toEqual(Array(10).fill(1000));
    },
  );
});

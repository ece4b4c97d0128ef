import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { DataError } from "../errors.ts";
import type { NamedBytes } from "../images.ts";
import { mnistFiles, mnistRecords } from "../mnist.ts";
import type { Records } from "../records.ts";
import { readIdx } from "./read-idx.ts";

/** Folder in which Debian's package `dataset-fashion-mnist` installs its gzip-compressed files. */
export const fashionMnistFolder = "/usr/share/datasets/fashion-mnist";

const packageCure = "install it with: apt-get install dataset-fashion-mnist";

/** SHA-256 of the published files, uncompressed, by file name. */
const published: Readonly<Record<string, string>> = {
  [mnistFiles.train.images]: "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
  [mnistFiles.train.labels]: "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
  [mnistFiles.test.images]: "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
  [mnistFiles.test.labels]: "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
};

/** Checks a file of Fashion-MNIST. @throws DataError if the file differs from the published file of the same name. */
export const requirePublished = (file: string, { name, bytes }: NamedBytes): void => {
  const expected = published[file]!;
  const actual = createHash("sha256").update(bytes).digest("hex");
  if (actual !== expected)
    throw new DataError(
      `${name} has SHA-256 ${actual.slice(0, 16)}…, but the published file has ${expected.slice(0, 16)}…; the file was altered: install it again with: apt-get install --reinstall dataset-fashion-mnist`,
    );
};

/**
 * Loads the 60,000 training and 10,000 test images of Fashion-MNIST into shared memory: clothes of ten classes, 28×28
 * gray levels, with the fields of `mnistRecords`. Files from Debian's package `dataset-fashion-mnist` are compared with
 * the published files. Another folder must contain the four IDX files, plain or `.gz`; only their format is checked.
 * Source: Xiao, Rasul and Vollgraf, Fashion-MNIST: a novel image dataset for benchmarking machine learning algorithms,
 * arXiv 1708.07747.
 *
 * @throws DataError if a file is missing, truncated or altered.
 */
export const loadFashionMnist = ({
  folder,
}: {
  readonly folder?: string | undefined;
} = {}): {
  readonly train: Records;
  readonly test: Records;
} => {
  const location = folder ?? fashionMnistFolder;
  const cure =
    folder === undefined
      ? packageCure
      : `the folder must hold the four IDX files of Fashion-MNIST; omit the folder to use ${fashionMnistFolder}`;
  if (folder === undefined && !existsSync(location))
    throw new DataError(
      `data set fashion-mnist was not found: there is no ${location}; ${packageCure}, or give a folder with its four IDX files`,
    );
  const read = (file: string): NamedBytes => {
    const found = readIdx(join(location, file), cure);
    if (folder === undefined) requirePublished(file, found);
    return found;
  };
  const pair = ({ images, labels }: { readonly images: string; readonly labels: string }): Records =>
    mnistRecords(read(images), read(labels));
  return { train: pair(mnistFiles.train), test: pair(mnistFiles.test) };
};

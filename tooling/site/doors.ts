import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { repository } from "../repository.ts";

/** What a program imports: a package that is published, or one of its further entries. */
export interface Door {
  /** As it is imported: `@skein/data/node`. */
  readonly name: string;
  /** From the repository's root. */
  readonly file: string;
  /** The package's, from the repository's root. */
  readonly folder: string;
}

interface Manifest {
  readonly name: string;
  readonly private?: boolean;
  readonly exports: Readonly<Record<string, string | { readonly default: string }>>;
}

const manifest = (folder: string): Manifest =>
  JSON.parse(readFileSync(join(repository, folder, "package.json"), "utf8")) as Manifest;

/** Folders of the packages that are published, from the repository's root. */
export const publishedFolders = (): string[] =>
  ["packages", "apps"]
    .flatMap((parent) => readdirSync(join(repository, parent)).map((name) => join(parent, name)))
    .filter((folder) => existsSync(join(repository, folder, "package.json")) && manifest(folder).private !== true);

/** The doors of all packages that are published, as their sources: those that TypeScript can be imported from. */
export const publishedDoors = (): Door[] =>
  publishedFolders().flatMap((folder) => {
    const { name, exports } = manifest(folder);
    return Object.entries(exports).flatMap(([path, target]) => {
      const file = typeof target === "string" ? target : target.default;
      // A file that is started and not imported, such as skein-train/launcher, has nothing to document.
      return file.endsWith(".ts") ? [{ name: join(name, path), file: join(folder, file), folder }] : [];
    });
  });

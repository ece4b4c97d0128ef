import { join } from "node:path";
import { AddonSources, builtFolders, cacheFolder } from "@skein/native-addon/node";
import type { LibraryIdentity } from "./addon.ts";

export const sources: AddonSources = new AddonSources(new URL("../native/", import.meta.url));

/** Files that a build writes to its folder. */
export interface BlasFiles {
  readonly addon: string;
  /** Path of the JSON table of measured shapes. */
  readonly table: string;
}

export const filesIn = (folder: string): BlasFiles => ({
  addon: join(folder, "skein-blas.node"),
  table: join(folder, "table.json"),
});

/**
 * Returns the cache folder of this machine's addons and their measurements: `skein/blas` in `$XDG_CACHE_HOME`, or by
 * default in `~/.cache`.
 */
export const defaultCacheFolder = (environment: NodeJS.ProcessEnv = process.env): string =>
  cacheFolder("blas", environment);

const fileName = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9.]+/g, "-");

export const cachedFolder = (cache: string, { family, version }: LibraryIdentity): string =>
  join(cache, `${fileName(`${family}-${version}`)}-${sources.key()}`);

/**
 * Returns the complete builds in `cache`, newest first. A build is complete if it has a table, because the table is
 * written last.
 */
export const completeBuilds = (cache: string): BlasFiles[] => builtFolders(cache, sources, "table.json").map(filesIn);

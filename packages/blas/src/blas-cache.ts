import { join } from "node:path";
import { AddonSources, builtFolders, cacheFolder } from "@skein/native-addon/node";
import type { LibraryIdentity } from "./addon.ts";

export const sources: AddonSources = new AddonSources(new URL("../native/", import.meta.url));

/** Files that a build writes to its folder. */
export interface BlasFiles {
  readonly addon: string;
  /** Path of the table of measured shapes, JSON. */
  readonly table: string;
}

export const filesIn = (folder: string): BlasFiles => ({
  addon: join(folder, "skein-blas.node"),
  table: join(folder, "table.json"),
});

/**
 * Cache folder of this machine's addons and their measurements: `skein/blas` in `$XDG_CACHE_HOME`. Default: in
 * `~/.cache`.
 */
export const defaultCacheFolder = (environment: NodeJS.ProcessEnv = process.env): string =>
  cacheFolder("blas", environment);

const fileName = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9.]+/g, "-");

export const cachedFolder = (cache: string, { family, version }: LibraryIdentity): string =>
  join(cache, `${fileName(`${family}-${version}`)}-${sources.key()}`);

/** Complete builds in `cache`, newest first. A build writes its table last. */
export const completeBuilds = (cache: string): BlasFiles[] => builtFolders(cache, sources, "table.json").map(filesIn);

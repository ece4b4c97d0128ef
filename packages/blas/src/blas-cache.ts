import { join } from "node:path";
import { AddonSources, builtFolders, cacheFolder } from "@skein/native-addon/node";
import type { LibraryIdentity } from "./addon.ts";

export const sources: AddonSources = new AddonSources(new URL("../native/", import.meta.url));

/** What a build leaves in its folder. */
export interface BlasPlace {
  readonly addon: string;
  /** The measured table, JSON. */
  readonly table: string;
}

export const placeIn = (folder: string): BlasPlace => ({
  addon: join(folder, "skein-blas.node"),
  table: join(folder, "table.json"),
});

/**
 * Where this machine's addons are kept, and what was measured of them: `skein/blas` in `$XDG_CACHE_HOME`, else in
 * `~/.cache`.
 */
export const defaultCacheFolder = (environment: NodeJS.ProcessEnv = process.env): string =>
  cacheFolder("blas", environment);

const fileName = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9.]+/g, "-");

export const cachedFolder = (cache: string, { family, version }: LibraryIdentity): string =>
  join(cache, `${fileName(`${family}-${version}`)}-${sources.key()}`);

/** Whole builds in `cache`, the newest first. The table is written last. */
export const builtPlaces = (cache: string): BlasPlace[] => builtFolders(cache, sources, "table.json").map(placeIn);

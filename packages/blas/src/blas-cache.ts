import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { LibraryFacts } from "./addon.ts";

/** Node-API's own version: an addon of it loads in every later Node. */
export const nodeApiVersion = 8;

/** The sources, beside `src` and beside `dist` alike. */
const nativeFolder = fileURLToPath(new URL("../native/", import.meta.url));

export const nativeSources = (): string[] =>
  readdirSync(nativeFolder)
    .filter((name) => /\.(cc|h)$/.test(name))
    .sort()
    .map((name) => join(nativeFolder, name));

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

/** Where builds are kept that no folder was given for: one of the user's, where no package manager cleans up. */
export const defaultCacheFolder = (environment: NodeJS.ProcessEnv = process.env): string =>
  join(environment["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "skein", "blas");

/** What must be equal for a built addon to fit, beside the library: sources, platform, and Node-API. */
const buildKey = (): string => {
  const hash = createHash("sha256");
  for (const path of nativeSources())
    hash.update(path.slice(nativeFolder.length)).update("\0").update(readFileSync(path)).update("\0");
  return `${process.platform}-${process.arch}-napi${nodeApiVersion}-${hash.digest("hex").slice(0, 16)}`;
};

const fileName = (text: string): string => text.toLowerCase().replaceAll(/[^a-z0-9.]+/g, "-");

export const cachedFolder = (cache: string, { family, version }: LibraryFacts): string =>
  join(cache, `${fileName(`${family}-${version}`)}-${buildKey()}`);

/**
 * Builds in `cache` from these sources for this platform, the newest first. The table is written last: without it a
 * build is not whole.
 */
export const builtPlaces = (cache: string): BlasPlace[] => {
  if (!existsSync(cache)) return [];
  const key = buildKey();
  return readdirSync(cache)
    .filter((name) => name.endsWith(`-${key}`))
    .map((name) => placeIn(join(cache, name)))
    .filter(({ addon, table }) => existsSync(addon) && existsSync(table))
    .map((place) => ({ place, built: statSync(place.table).mtimeMs }))
    .sort((a, b) => b.built - a.built)
    .map(({ place }) => place);
};

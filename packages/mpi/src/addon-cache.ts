import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { MpiFamily } from "./addon.ts";

export const addonFile = "skein-mpi.node";
/** Node-API's own version: an addon of it loads in every later Node. */
export const nodeApiVersion = 8;

/** The sources, beside `src` and beside `dist` alike. */
const nativeFolder = fileURLToPath(new URL("../native/", import.meta.url));

export const nativeSources = (): string[] =>
  readdirSync(nativeFolder)
    .filter((name) => /\.(cc|h)$/.test(name))
    .sort()
    .map((name) => join(nativeFolder, name));

/** Where addons are kept that no folder was given for: one of the user's, where no package manager cleans up. */
export const defaultCacheFolder = (environment: NodeJS.ProcessEnv = process.env): string =>
  join(environment["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "skein", "mpi");

/** What must be equal for a built addon to fit, beside the MPI library: sources, platform, and Node-API. */
export const buildKey = (): string => {
  const hash = createHash("sha256");
  for (const path of nativeSources())
    hash.update(path.slice(nativeFolder.length)).update("\0").update(readFileSync(path)).update("\0");
  return `${process.platform}-${process.arch}-napi${nodeApiVersion}-${hash.digest("hex").slice(0, 16)}`;
};

export const cachedAddon = (folder: string, family: MpiFamily, version: string): string =>
  join(folder, `${family}-${version}-${buildKey()}`, addonFile);

/** Addons in `folder` that were built from these sources for this platform, the newest first. */
export const builtAddons = (folder: string, family?: MpiFamily): string[] => {
  if (!existsSync(folder)) return [];
  const key = buildKey();
  return readdirSync(folder)
    .filter((name) => name.endsWith(`-${key}`) && (family === undefined || name.startsWith(`${family}-`)))
    .map((name) => join(folder, name, addonFile))
    .filter((path) => existsSync(path))
    .map((path) => ({ path, built: statSync(path).mtimeMs }))
    .sort((a, b) => b.built - a.built)
    .map(({ path }) => path);
};

import { join } from "node:path";
import { AddonSources, builtFolders, cacheFolder } from "@skein/native-addon/node";
import type { MpiFamily } from "./addon.ts";

export const addonFile = "skein-mpi.node";
export const sources: AddonSources = new AddonSources(new URL("../native/", import.meta.url));

/**
 * Returns the cache folder of this machine's addons, one addon per MPI library: `skein/mpi` in `$XDG_CACHE_HOME` or, if
 * unset, in `~/.cache`.
 */
export const defaultCacheFolder = (environment: NodeJS.ProcessEnv = process.env): string =>
  cacheFolder("mpi", environment);

export const cachedAddon = (folder: string, family: MpiFamily, version: string): string =>
  join(folder, `${family}-${version}-${sources.key()}`, addonFile);

/**
 * Returns the paths of the addons in `folder` that were built from the current native sources for this platform, newest
 * first.
 */
export const builtAddons = (folder: string, family?: MpiFamily): string[] =>
  builtFolders(folder, sources, addonFile)
    .filter((built) => family === undefined || built.startsWith(join(folder, `${family}-`)))
    .map((built) => join(built, addonFile));

import { createRequire } from "node:module";
import { resolve } from "node:path";
import type { MpiAddon, MpiFamily } from "./addon.ts";
import { builtAddons, defaultCacheFolder } from "./addon-cache.ts";
import { MpiError } from "./errors.ts";
import { findLauncher } from "./launcher.ts";

/** Options that determine which addon is loaded. */
export interface LoadMpiOptions {
  /**
   * File of the addon. Default: $SKEIN_MPI_ADDON, otherwise the newest addon in the cache that matches the launcher.
   */
  readonly addon?: string;
  readonly cacheFolder?: string;
  readonly environment?: NodeJS.ProcessEnv;
}

const rebuild = "build it on this machine with: skein-train mpi build";

/**
 * Returns the path of the addon that `loadMpi` would load, without loading it.
 *
 * @param family MPI family for which the addon must be built. Absent: the newest addon of any family.
 * @throws MpiError `mpi-missing` if no addon was built.
 */
export const findAddon = (
  { addon, environment = process.env, cacheFolder = defaultCacheFolder(environment) }: LoadMpiOptions,
  family: MpiFamily | undefined,
): string => {
  const file = addon ?? (environment["SKEIN_MPI_ADDON"] || builtAddons(cacheFolder, family)[0]);
  if (file !== undefined) return file;
  const what = family === undefined ? "" : ` for ${family}`;
  throw new MpiError("mpi-missing", `no MPI addon${what} is in ${cacheFolder}; ${rebuild}`);
};

/**
 * Loads an addon built by `buildMpiAddon`. If addons for Open MPI and for MPICH exist, the launcher of this process
 * determines which addon is loaded.
 *
 * @throws MpiError `mpi-missing` if there is no addon, or its MPI library is missing or of the other family.
 */
export const loadMpi = (options: LoadMpiOptions = {}): MpiAddon => {
  const file = findAddon(options, findLauncher(options.environment ?? process.env)?.family);
  let addon: MpiAddon;
  try {
    addon = createRequire(import.meta.url)(resolve(file)) as MpiAddon;
  } catch (error) {
    const reason = (error as Error).message.split("\n")[0];
    throw new MpiError("mpi-missing", `the MPI addon ${file} does not load: ${reason}; ${rebuild}`, { cause: error });
  }
  const library = addon.library();
  const found = library.startsWith("Open MPI") ? "open-mpi" : "mpich";
  if (found !== addon.family)
    throw new MpiError(
      "mpi-missing",
      `the MPI addon was built for ${addon.family} ${addon.version}, but the library that it finds is ${library.split("\n")[0]}; ${rebuild}`,
    );
  return addon;
};

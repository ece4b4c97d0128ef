import { createRequire } from "node:module";
import { resolve } from "node:path";
import type { MpiAddon } from "./addon.ts";
import { builtAddons, defaultCacheFolder } from "./addon-cache.ts";
import { MpiError } from "./errors.ts";
import { findLauncher } from "./launcher.ts";

/** Which addon is loaded. */
export interface LoadOptions {
  /** The addon's file. Default: $SKEIN_MPI_ADDON, else the newest in the cache that fits the launcher. */
  readonly addon?: string;
  readonly cacheFolder?: string;
  readonly environment?: NodeJS.ProcessEnv;
}

const rebuild = "build it on this machine with: skein-train mpi build";

/**
 * Load the addon that `buildMpiAddon` has built. Where Open MPI and MPICH were both built for, the launcher of this
 * process decides.
 *
 * @throws MpiError `mpi-missing` when there is none, or its MPI library is gone or of the other family.
 */
export const loadMpi = (options: LoadOptions = {}): MpiAddon => {
  const { environment = process.env, cacheFolder = defaultCacheFolder(environment) } = options;
  const family = findLauncher(environment)?.family;
  const file = options.addon ?? (environment["SKEIN_MPI_ADDON"] || builtAddons(cacheFolder, family)[0]);
  if (file === undefined) {
    const what = family === undefined ? "" : ` for ${family}, whose launcher started this process,`;
    throw new MpiError("mpi-missing", `no MPI addon${what} is in ${cacheFolder}; ${rebuild}`);
  }
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

import { createRequire } from "node:module";
import { resolve } from "node:path";
import type { MpiAddon, MpiFamily } from "./addon.ts";
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
 * Path of the addon that `loadMpi` would load, without loading it.
 *
 * @param family of the MPI that the addon must be built for. Absent: the newest addon of any family.
 * @throws MpiError `mpi-missing` when none is built.
 */
export const findAddon = (
  { addon, environment = process.env, cacheFolder = defaultCacheFolder(environment) }: LoadOptions,
  family: MpiFamily | undefined,
): string => {
  const file = addon ?? (environment["SKEIN_MPI_ADDON"] || builtAddons(cacheFolder, family)[0]);
  if (file !== undefined) return file;
  const what = family === undefined ? "" : ` for ${family}`;
  throw new MpiError("mpi-missing", `no MPI addon${what} is in ${cacheFolder}; ${rebuild}`);
};

/**
 * Load the addon that `buildMpiAddon` has built. Where Open MPI and MPICH were both built for, the launcher of this
 * process decides.
 *
 * @throws MpiError `mpi-missing` when there is none, or its MPI library is gone or of the other family.
 */
export const loadMpi = (options: LoadOptions = {}): MpiAddon => {
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

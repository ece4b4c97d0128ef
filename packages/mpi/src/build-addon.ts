import { mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { compileAddon, CompilerError, otherWriters, runCompiler } from "@skein/native-addon/node";
import type { MpiFamily } from "./addon.ts";
import { addonFile, cachedAddon, defaultCacheFolder, sources } from "./addon-cache.ts";
import { MpiError } from "./errors.ts";

const includeOf = (packageName: string, folder: string): string =>
  join(dirname(createRequire(import.meta.url).resolve(`${packageName}/package.json`)), folder);

const cure =
  "install an MPI with its compiler (Debian: apt install g++ libopenmpi-dev openmpi-bin, or mpich libmpich-dev; clusters: module load openmpi) or pass it with --compiler; transport tcp needs no MPI";

/** Awaits a compilation, and converts a compiler error to an MpiError with a one-line message. */
const explained = async <T>(compiler: string, compiling: Promise<T>): Promise<T> => {
  try {
    return await compiling;
  } catch (error) {
    if (!(error instanceof CompilerError)) throw error;
    if (error.isMissing)
      throw new MpiError("mpi-missing", `there is no MPI compiler "${compiler}" here; ${cure}`, { cause: error });
    throw new MpiError("mpi-build", `${error.message}; ${cure}`, { cause: error });
  }
};

/** Returns the MPI family and version of a compiler, from the macros of its mpi.h. */
const libraryOf = async (compiler: string): Promise<{ family: MpiFamily; version: string }> => {
  const header = sources.files().find((path) => path.endsWith("mpi-headers.h"))!;
  const text = await explained(compiler, runCompiler(compiler, ["-E", "-dM", "-x", "c++", header]));
  const macro = (name: string): string | undefined =>
    new RegExp(`^#define ${name} "?([^"\\n]*)"?$`, "m").exec(text)?.[1];
  const parts = ["OMPI_MAJOR_VERSION", "OMPI_MINOR_VERSION", "OMPI_RELEASE_VERSION"].map(macro);
  if (macro("OPEN_MPI") !== undefined) return { family: "open-mpi", version: parts.join(".") };
  return { family: "mpich", version: macro("MPICH_VERSION")! }; // The header itself refuses any other MPI.
};

export interface BuildMpiAddonOptions {
  /** C++ compiler of the MPI library. Default: $MPICXX, otherwise `mpicxx`. */
  readonly compiler?: string;
  /** Output file. Default: a file in the user's cache that `loadMpi` finds. */
  readonly output?: string;
  /** Cache folder. Default: $XDG_CACHE_HOME/skein/mpi or ~/.cache/skein/mpi. */
  readonly cacheFolder?: string;
}

/** A built addon: its file, and the MPI family and version for which it was built. */
export interface BuiltAddon {
  readonly file: string;
  readonly family: MpiFamily;
  readonly version: string;
}

/**
 * Builds the addon for the MPI library of this machine. No binary is shipped, because the ABI depends on the cluster.
 * Takes about 10 s. The file appears atomically, even if several ranks build at the same time.
 *
 * @throws MpiError `mpi-missing` without a compiler, `mpi-build` if compiling fails.
 */
export const buildMpiAddon = async (options: BuildMpiAddonOptions = {}): Promise<BuiltAddon> => {
  const { compiler = process.env["MPICXX"] || "mpicxx", cacheFolder = defaultCacheFolder() } = options;
  const { family, version } = await libraryOf(compiler);
  const file = options.output ?? cachedAddon(cacheFolder, family, version);
  const fault = options.output === undefined ? otherWriters(dirname(file)) : undefined;
  if (fault !== undefined)
    throw new MpiError(
      "mpi-build",
      `${fault}, so an addon there would not be loaded; change owner and mode, or pass --output`,
    );
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const workFolder = mkdtempSync(join(dirname(file), ".building-"));
  try {
    const unfinished = join(workFolder, addonFile);
    const compiling = compileAddon({
      compiler,
      sources,
      output: unfinished,
      include: [includeOf("node-api-headers", "include"), includeOf("node-addon-api", ".")],
      // A thread that is being terminated cannot throw.
      defines: ["NAPI_CPP_EXCEPTIONS", "NODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS"],
    });
    await explained(compiler, compiling);
    renameSync(unfinished, file);
  } finally {
    rmSync(workFolder, { recursive: true, force: true });
  }
  return { file, family, version };
};

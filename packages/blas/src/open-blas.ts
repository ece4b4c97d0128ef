import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { resolve } from "node:path";
import type { Blas } from "@skein/cpu-kernels";
import type { WasmMemory } from "@skein/tensor-core/backend";
import { type BlasAddon, type LibraryFacts, libraryText } from "./addon.ts";
import { type BlasFiles, completeBuilds, defaultCacheFolder, filesIn } from "./blas-cache.ts";
import { BlasError } from "./errors.ts";
import { chooser, readTable, type ShapeTable, tableDigest } from "./shape-table.ts";

const rebuild =
  "build it on this machine with: skein-train blas build, or set blas: off in the job to compute without a BLAS";

/** Loads the addon. Throws BlasError `blas-missing` if the addon cannot be loaded. */
export const loadAddon = (file: string): BlasAddon => {
  try {
    return createRequire(import.meta.url)(resolve(file)) as BlasAddon;
  } catch (error) {
    const reason = (error as Error).message.split("\n")[0];
    throw new BlasError("blas-missing", `the BLAS addon ${file} does not load: ${reason}; ${rebuild}`, {
      cause: error,
    });
  }
};

/**
 * Returns the properties that a library reports about itself.
 *
 * @throws BlasError `blas-missing` if the library cannot be used.
 */
export const describeLibrary = (addon: BlasAddon, library: string): LibraryFacts => {
  try {
    return addon.describe(library);
  } catch (error) {
    throw new BlasError("blas-missing", `the BLAS ${library} cannot be used: ${(error as Error).message}; ${rebuild}`, {
      cause: error,
    });
  }
};

/**
 * Finds the addon and table that `buildBlas` has written: in the folder $SKEIN_BLAS, or the newest build in the cache.
 * Returns undefined if no build exists. WebAssembly then computes everything.
 *
 * @throws BlasError `blas-missing` if $SKEIN_BLAS names a folder without an addon or a table.
 */
export const findBlas = (
  environment: NodeJS.ProcessEnv = process.env,
  cache: string = defaultCacheFolder(environment),
): BlasFiles | undefined => {
  const folder = environment["SKEIN_BLAS"];
  if (folder === undefined || folder === "") return completeBuilds(cache)[0];
  const files = filesIn(folder);
  const missingFile = Object.values(files).find((file: string) => !existsSync(file));
  if (missingFile === undefined) return files;
  throw new BlasError(
    "blas-missing",
    `SKEIN_BLAS names ${folder}, but ${missingFile} does not exist; build it with: skein-train blas build --output ${folder}`,
  );
};

/**
 * Returns a library's matrix multiplication, bound to a memory. The address is passed only once, because a shared
 * WebAssembly memory does not move when it grows.
 */
export const openProduct = (addon: BlasAddon, library: string, memory: WasmMemory): ReturnType<BlasAddon["open"]> =>
  addon.open(library, new Uint8Array(memory.buffer));

/** An opened BLAS, and whether several threads can multiply with the BLAS concurrently. */
interface MeasuredBlas extends Blas {
  readonly concurrent: boolean;
}

/**
 * Opens the BLAS library that was measured for a table.
 *
 * @throws BlasError under the same conditions as `openBlas`.
 */
export const openMeasured = (files: BlasFiles, table: ShapeTable): MeasuredBlas => {
  const addon = loadAddon(files.addon);
  const { name, ...measured } = table.library;
  const found = describeLibrary(addon, name);
  if (found.family !== measured.family || found.version !== measured.version)
    throw new BlasError(
      "blas-changed",
      `${files.table} was measured with ${measured.family} ${measured.version}, but ${name} is now ${found.family} ${found.version}; ${rebuild}`,
    );
  return {
    identity: `${libraryText(found)} by table ${tableDigest(table)}`,
    concurrent: found.concurrent,
    prefers: chooser(table),
    open: (memory) => openProduct(addon, name, memory),
    // If threads multiply one at a time, slices do not save time.
    sliceRows: found.concurrent ? table.sliceRows : undefined,
    inThreads: {
      module: new URL("./thread-product.ts", import.meta.url).href,
      data: { addon: resolve(files.addon), library: name },
    },
  };
};

/**
 * Opens a built BLAS for `createCpuBackend({ blas })`. Each thread opens its own instance, and the BLAS computes in the
 * calling thread.
 *
 * @throws BlasError `blas-missing` if the addon or the library cannot be loaded, `blas-table` if the table is invalid,
 * `blas-changed` if the library is not the measured version.
 * @example const files = findBlas(); const backend = await createCpuBackend({ blas: files && openBlas(files) });
 */
export const openBlas = (files: BlasFiles): Blas => openMeasured(files, readTable(files.table));

import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { compileAddon, CompilerError, otherWriters } from "@skein/native-addon/node";
import { type BlasAddon, type LibraryFacts, libraryText } from "./addon.ts";
import { type BlasFiles, cachedFolder, defaultCacheFolder, filesIn, sources } from "./blas-cache.ts";
import { BlasError } from "./errors.ts";
import { measureTable, type MeasureOptions } from "./measure-table.ts";
import { describeLibrary, loadAddon, openProduct } from "./open-blas.ts";
import { isFaster, type ShapeTable } from "./shape-table.ts";
import { measureSliceRows } from "./slice-rows.ts";
import { libraryNames } from "./system-libraries.ts";

const headers = (): string =>
  join(dirname(createRequire(import.meta.url).resolve("node-api-headers/package.json")), "include");

const cure = "Debian: apt install g++ libopenblas0-pthread; a BLAS is optional, WebAssembly computes without one";

/** Compiles the addon. Throws BlasError with a one-line message if the compiler fails. */
const compile = async (compiler: string, output: string): Promise<void> => {
  // Before glibc 2.34, dlopen was in a separate library.
  const libraries = process.platform === "darwin" ? [] : ["dl"];
  try {
    await compileAddon({ compiler, sources, output, include: [headers()], libraries });
  } catch (error) {
    if (!(error instanceof CompilerError)) throw error;
    const { isMissing, message } = error;
    throw new BlasError(
      isMissing ? "blas-missing" : "blas-build",
      isMissing
        ? `the C++ compiler "${compiler}" was not found; install a C++ compiler, or specify one with --compiler (${cure})`
        : `${message}; install a C++17 compiler, or specify one with --compiler (${cure})`,
      { cause: error },
    );
  }
};

/** Returns the library that the caller names, or the first installed library that can be used. */
const chooseLibrary = (
  addon: BlasAddon,
  requested: string | undefined,
): { readonly name: string; readonly facts: LibraryFacts } => {
  if (requested !== undefined) return { name: requested, facts: describeLibrary(addon, requested) };
  for (const name of libraryNames) {
    try {
      return { name, facts: addon.describe(name) };
    } catch {
      // not installed, or not a supported BLAS: try the next name
    }
  }
  throw new BlasError(
    "blas-missing",
    `no BLAS was found: none of ${libraryNames.join(", ")} is an installed OpenBLAS, BLIS or MKL; install one, or specify a library with --library (${cure})`,
  );
};

export interface BuildBlasOptions extends Pick<MeasureOptions, "onProgress" | "kernels"> {
  /** C++ compiler to use. Default: $CXX, or `g++` if $CXX is not set. */
  readonly compiler?: string;
  /**
   * Name or path of the BLAS library for the loader. Default: the first installed library of OpenBLAS, MKL and BLIS.
   */
  readonly library?: string;
  /** Folder to write the build to. Default: a folder in the user's cache that `findBlas` finds. */
  readonly output?: string;
  /** Cache folder. Default: $XDG_CACHE_HOME/skein/blas or ~/.cache/skein/blas. */
  readonly cacheFolder?: string;
}

export interface BuiltBlas extends BlasFiles {
  /** Text that identifies the library, such as "OpenBLAS 0.3.21 (Cooperlake)". */
  readonly library: string;
  /** Whether several threads can multiply concurrently. */
  readonly concurrent: boolean;
  /**
   * Counts of shapes. `measured`: number of measured shapes. `faster`: number of measured shapes that the library
   * computes faster than WebAssembly.
   */
  readonly measured: number;
  readonly faster: number;
}

/**
 * Builds the addon, and measures on this machine which shapes the BLAS computes faster than WebAssembly. Takes about a
 * minute on an idle core. Other load slows both implementations equally, but makes the choice less certain. The folder
 * is replaced atomically: it contains two complete files or its old content, even if several builds run at the same
 * time.
 *
 * @throws BlasError `blas-missing` if there is no compiler or no BLAS, `blas-build` if the compiler fails.
 */
export const buildBlas = async (options: BuildBlasOptions = {}): Promise<BuiltBlas> => {
  const { compiler = process.env["CXX"] || "g++", cacheFolder = defaultCacheFolder(), onProgress, kernels } = options;
  const parent = options.output ?? cacheFolder;
  const fault = options.output === undefined ? otherWriters(parent) : undefined;
  if (fault !== undefined)
    throw new BlasError(
      "blas-build",
      `${fault}, so a BLAS in this folder would not be loaded; change its owner and mode, or specify another folder with --output`,
    );
  mkdirSync(parent, { recursive: true, mode: 0o700 });
  const work = mkdtempSync(join(parent, ".building-"));
  try {
    const unfinished = filesIn(work);
    await compile(compiler, unfinished.addon);
    const addon = loadAddon(unfinished.addon);
    const { name, facts } = chooseLibrary(addon, options.library);
    const shapes = await measureTable((memory) => openProduct(addon, name, memory), {
      ...(onProgress && { onProgress }),
      ...(kernels && { kernels }),
    });
    const sliceRows = measureSliceRows((memory) => openProduct(addon, name, memory));
    const table: ShapeTable = {
      format: "skein-blas-table",
      version: 1,
      library: { name, family: facts.family, version: facts.version, core: facts.core },
      shapes,
      sliceRows,
    };
    writeFileSync(unfinished.table, `${JSON.stringify(table)}\n`);
    const folder = options.output ?? cachedFolder(cacheFolder, facts);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const files = filesIn(folder);
    renameSync(unfinished.addon, files.addon);
    renameSync(unfinished.table, files.table);
    return {
      ...files,
      library: libraryText(facts),
      concurrent: facts.concurrent,
      measured: shapes.length,
      faster: shapes.filter(isFaster).length,
    };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
};

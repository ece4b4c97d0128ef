/** Environment variables that affect the results or speed of a run. None of them contains a secret. */
const named: ReadonlySet<string> = new Set([
  "NODE_OPTIONS",
  "UV_THREADPOOL_SIZE",
  "OMP_NUM_THREADS",
  "OPENBLAS_NUM_THREADS",
  "MKL_NUM_THREADS",
  "CUDA_VISIBLE_DEVICES",
  "VK_ICD_FILENAMES",
  "SKEIN_BLAS",
  "SKEIN_CACHE_DIR",
  "SKEIN_COORDINATOR",
  "SKEIN_MPI_ADDON",
  "SKEIN_NO_MODULES",
]);

/** Selects the environment variables that provenance records. */
export const recordedEnvironment = (env: Readonly<Record<string, string | undefined>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(env)
      .filter((entry): entry is [string, string] => entry[1] !== undefined && named.has(entry[0]))
      .toSorted(([a], [b]) => (a < b ? -1 : 1)),
  );

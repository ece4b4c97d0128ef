/** Variables that change what a run does or how fast it is. */
const named: ReadonlySet<string> = new Set([
  "NODE_OPTIONS",
  "UV_THREADPOOL_SIZE",
  "OMP_NUM_THREADS",
  "OPENBLAS_NUM_THREADS",
  "MKL_NUM_THREADS",
  "CUDA_VISIBLE_DEVICES",
  "VK_ICD_FILENAMES",
]);

const isSecret = /secret|token|key|pass|credential|auth/i;

/** What is told of the environment: variables on the list, and ours that hold no secret. All others stay untold. */
export const toldEnvironment = (env: Readonly<Record<string, string | undefined>>): Record<string, string> =>
  Object.fromEntries(
    Object.entries(env)
      .filter(
        (entry): entry is [string, string] =>
          entry[1] !== undefined && (named.has(entry[0]) || entry[0].startsWith("SKEIN_")) && !isSecret.test(entry[0]),
      )
      .toSorted(([a], [b]) => (a < b ? -1 : 1)),
  );

import { compileWasm, createSharedMemory, detectBuild } from "@skein/cpu-kernels";
import type { Job } from "@skein/job/node";
import { openBackend, type OpenBackend } from "./backend.ts";
import { openJobBlas } from "./job-blas.ts";
import { threadsOf } from "./job-threads.ts";

/**
 * Opens the backend for a program with a single rank: `cpu`, unless the run uses `webgpu`. Results are bitwise
 * identical to results of the job. The caller must close the backend.
 */
export const openSingleRankBackend = async ({
  backend,
  blas,
  threads,
}: Pick<Job, "backend" | "blas" | "threads">): Promise<OpenBackend> =>
  openBackend(backend === "webgpu" ? "webgpu" : "cpu", {
    memory: createSharedMemory(),
    module: await compileWasm(await detectBuild()),
    blas: openJobBlas({ blas }),
    threads: threadsOf({ ranks: 1, threads }),
  });

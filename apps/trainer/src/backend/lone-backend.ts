import { compileWasm, createSharedMemory, detectBuild } from "@skein/cpu-kernels";
import { openBackend, type OpenBackend } from "./backend.ts";
import { openJobBlas } from "./job-blas.ts";
import { threadsOf } from "./job-threads.ts";
import type { Job } from "../job/job.ts";

/**
 * What a program without other ranks computes on, with the bits that a job has there: `cpu` unless a run has settled on
 * another. Close it when done.
 */
export const openLoneBackend = async ({
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

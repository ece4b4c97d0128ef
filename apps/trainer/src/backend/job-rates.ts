import type { DeviceFacts } from "@skein/gpu-kernels";
import type { Job } from "@skein/job/node";
import { type BackendName, openWebGpu } from "./backend.ts";
import type { BackendRates } from "./backend-rates.ts";
import { openJobBlas } from "./job-blas.ts";
import { threadsOf } from "./job-threads.ts";
import { measureCpuRates, measureRates } from "./measure-rates.ts";

/** Measured rates of a backend, and properties of its device. `device` is undefined for the CPU backend. */
export interface JobRates {
  readonly rates: BackendRates;
  readonly device: DeviceFacts | undefined;
}

/**
 * Measures the rates of a backend for a short time, as one rank of the job would use the backend.
 *
 * @throws AdapterError if there is no device for the backend.
 */
export const measureJobRates = async (
  job: Pick<Job, "blas" | "ranks" | "threads">,
  backend: BackendName,
): Promise<JobRates> => {
  if (backend === "cpu")
    return {
      rates: await measureCpuRates({ blas: openJobBlas(job), threads: threadsOf(job) }),
      device: undefined,
    };
  const opened = await openWebGpu();
  try {
    return { rates: await measureRates(opened), device: opened.facts };
  } finally {
    opened.close();
  }
};

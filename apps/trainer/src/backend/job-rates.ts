import type { DeviceFacts } from "@skein/gpu-kernels";
import { type BackendName, openWebGpu } from "./backend.ts";
import type { BackendRates } from "./backend-rates.ts";
import type { Job } from "../job/job.ts";
import { openJobBlas } from "./job-blas.ts";
import { threadsOf } from "./job-threads.ts";
import { measureCpuRates, measureRates } from "./measure-rates.ts";

/** What a backend gets through, and the device that it is, if it is one. */
export interface JobRates {
  readonly rates: BackendRates;
  readonly device: DeviceFacts | undefined;
}

/**
 * Measure what one rank of a job gets through on a backend, in a moment.
 *
 * @throws AdapterError where there is no such device.
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

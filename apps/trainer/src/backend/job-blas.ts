import { type BlasFiles, findBlas, openBlas } from "@skein/blas/node";
import type { Blas } from "@skein/cpu-kernels";
import type { Job } from "../job/job.ts";

/** The BLAS for a job's products on the CPU: the BLAS that was built on this machine, unless the job sets `off`. */
export const blasOf = ({ blas }: Pick<Job, "blas">): BlasFiles | undefined => (blas === "off" ? undefined : findBlas());

/**
 * Opens the BLAS of a job in this thread.
 *
 * @throws BlasError if the BLAS was built, but can no longer be used: a job that continued without it would give other
 * bits.
 */
export const openJobBlas = (job: Pick<Job, "blas">): Blas | undefined => {
  const location = blasOf(job);
  return location && openBlas(location);
};

/** Describes what computes matrix products: part of a build's name, because the bits of results depend on it. */
export const productsBy = (job: Pick<Job, "blas">): string => {
  const blas = openJobBlas(job);
  return blas === undefined ? "products in WebAssembly" : `products by ${blas.identity}`;
};

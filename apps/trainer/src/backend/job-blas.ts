import { type BlasFiles, findBlas, openBlas } from "@skein/blas/node";
import type { Blas } from "@skein/cpu-kernels";
import type { Job } from "@skein/job/node";

/**
 * Returns the BLAS that was built on this machine, for matrix products on the CPU. Undefined if no BLAS was built, or
 * if the job sets `blas: off`.
 */
export const blasOf = ({ blas }: Pick<Job, "blas">): BlasFiles | undefined => (blas === "off" ? undefined : findBlas());

/**
 * Opens the BLAS of a job in this thread.
 *
 * @throws BlasError if the BLAS was built, but can no longer be used. Continuing without BLAS would change the bits of
 * results.
 */
export const openJobBlas = (job: Pick<Job, "blas">): Blas | undefined => {
  const location = blasOf(job);
  return location && openBlas(location);
};

/**
 * Describes the implementation of matrix products. The description is part of the build name that ranks compare,
 * because the bits of results depend on the implementation.
 */
export const productsBy = (job: Pick<Job, "blas">): string => {
  const blas = openJobBlas(job);
  return blas === undefined ? "products in WebAssembly" : `products by ${blas.identity}`;
};

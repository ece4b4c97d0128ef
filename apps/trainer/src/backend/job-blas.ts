import { type BlasFiles, findBlas, openBlas } from "@skein/blas/node";
import type { Blas } from "@skein/cpu-kernels";
import type { Job } from "@skein/job/node";

/**
 * Returns the files of the BLAS library that was built on this machine for matrix products on the CPU. Undefined if no
 * BLAS was built, or if the job sets `blas: off`.
 */
export const blasOf = ({ blas }: Pick<Job, "blas">): BlasFiles | undefined => (blas === "off" ? undefined : findBlas());

/**
 * Loads the BLAS library of a job in this thread. Undefined: the job uses no BLAS.
 *
 * @throws BlasError if the library was built but cannot be loaded. The error prevents a run without BLAS, whose results
 * would differ in the last bits.
 */
export const openJobBlas = (job: Pick<Job, "blas">): Blas | undefined => {
  const location = blasOf(job);
  return location && openBlas(location);
};

/**
 * Describes the implementation of matrix products. The description is part of the build name that ranks compare,
 * because different implementations round differently.
 */
export const productsBy = (job: Pick<Job, "blas">): string => {
  const blas = openJobBlas(job);
  return blas === undefined ? "products in WebAssembly" : `products by ${blas.identity}`;
};

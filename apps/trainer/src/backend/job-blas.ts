import { type BlasPlace, findBlas, openBlas } from "@skein/blas/node";
import type { Blas } from "@skein/cpu-kernels";
import type { Job } from "../job/job.ts";

/**
 * The BLAS that a job's products run on where it computes on the CPU: what was built on this machine, unless the job
 * says `off`.
 */
export const blasOf = ({ blas }: Pick<Job, "blas">): BlasPlace | undefined => (blas === "off" ? undefined : findBlas());

/**
 * Open it in this thread.
 *
 * @throws BlasError where it was built, but cannot be used any more: a job that went on without it would end with other
 * bits.
 */
export const openJobBlas = (job: Pick<Job, "blas">): Blas | undefined => {
  const place = blasOf(job);
  return place && openBlas(place);
};

/** Whether ranks share what they multiply by, in words: part of a build's name, since bits follow from it. */
export const productsBy = (job: Pick<Job, "blas">): string => {
  const blas = openJobBlas(job);
  return blas === undefined ? "products in WebAssembly" : `products by ${blas.identity}`;
};

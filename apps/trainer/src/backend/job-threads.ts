import { availableParallelism } from "node:os";
import type { Job } from "@skein/job/node";

/**
 * Returns the number of CPU threads per rank: the number in the job, or this machine's cores divided by the number of
 * ranks. Results do not depend on the number of threads.
 */
export const threadsOf = ({ threads, ranks }: Pick<Job, "ranks" | "threads">): number =>
  threads ?? Math.max(1, Math.floor(availableParallelism() / ranks));

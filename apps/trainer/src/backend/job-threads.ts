import { availableParallelism } from "node:os";
import type { Job } from "@skein/job/node";

/**
 * Returns the number of CPU threads of each rank: the number given in the job, or this machine's cores divided among
 * all ranks. Results do not depend on this number.
 */
export const threadsOf = ({ threads, ranks }: Pick<Job, "ranks" | "threads">): number =>
  threads ?? Math.max(1, Math.floor(availableParallelism() / ranks));

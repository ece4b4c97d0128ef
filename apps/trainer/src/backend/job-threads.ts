import { availableParallelism } from "node:os";
import type { Job } from "../job/job.ts";

/**
 * CPU threads of each rank: the number given in the job, otherwise this machine's cores divided among all ranks.
 * Results do not depend on the number.
 */
export const threadsOf = ({ threads, ranks }: Pick<Job, "ranks" | "threads">): number =>
  threads ?? Math.max(1, Math.floor(availableParallelism() / ranks));

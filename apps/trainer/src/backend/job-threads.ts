import { availableParallelism } from "node:os";
import type { Job } from "../job/job.ts";

/**
 * Threads of each rank where it computes on the CPU: as the job says, else this machine's cores shared by all ranks.
 * Not a bit of a result follows from it.
 */
export const threadsOf = ({ threads, ranks }: Pick<Job, "ranks" | "threads">): number =>
  threads ?? Math.max(1, Math.floor(availableParallelism() / ranks));

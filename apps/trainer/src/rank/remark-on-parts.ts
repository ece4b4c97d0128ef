import { expertsOf } from "../job/experts-of.ts";
import type { Job } from "../job/job.ts";
import type { AnyModel } from "../task/task.ts";

/**
 * What is of a part of a batch instead of the whole batch in a job that computes its batches in several parts;
 * undefined if nothing is.
 *
 * @param hasState whether the model has a state.
 */
export const remarkOnParts = (
  job: Pick<Job, "accumulate" | "model" | "mesh">,
  { joinParts }: Pick<AnyModel, "joinParts">,
  hasState: boolean,
): string | undefined => {
  const { accumulate = 1 } = job;
  if (accumulate === 1) return undefined;
  const experts = expertsOf(job);
  const ofParts = [
    ...(hasState && joinParts === undefined
      ? ["the model's state, such as running statistics, changes once a part"]
      : []),
    ...(experts !== undefined && experts.capacity !== "all" ? ["the capacity of experts is that of a part"] : []),
  ];
  return ofParts.length === 0 ? undefined : `accumulate: ${accumulate}: ${ofParts.join("; ")}`;
};

import { expertsOf, type Job } from "@skein/job/node";
import type { AnyModel } from "@skein/step/node";

/**
 * Returns a remark that lists the operations that a job with `accumulate` applies to each microbatch instead of the
 * complete batch. Undefined: there are no such operations.
 *
 * @param hasState Whether the model has a state.
 */
export const remarkOnParts = (
  job: Pick<Job, "accumulate" | "model" | "mesh">,
  { joinParts }: Pick<AnyModel, "joinParts">,
  hasState: boolean,
): string | undefined => {
  const { accumulate = 1 } = job;
  if (accumulate === 1) return undefined;
  const experts = expertsOf(job);
  const remarks = [
    ...(hasState && joinParts === undefined
      ? ["the model's state, such as running statistics, changes once per part"]
      : []),
    ...(experts !== undefined && experts.capacity !== "all"
      ? ["the capacity of experts is the capacity of one part"]
      : []),
  ];
  return remarks.length === 0 ? undefined : `accumulate: ${accumulate}: ${remarks.join("; ")}`;
};

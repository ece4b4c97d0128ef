import type { Checkpoint } from "@skein/checkpoints/node";
import { DamagedCheckpointError } from "@skein/cli/node";
import { type ExchangePlan, exchangePlanSchema } from "./exchange-plan.ts";

/**
 * Returns the plan in a checkpoint; undefined if the checkpoint has no plan.
 *
 * @throws DamagedCheckpointError if another version of Skein wrote the plan.
 */
export const savedPlan = ({ folder, manifest: { plan } }: Checkpoint): ExchangePlan | undefined => {
  if (plan === undefined) return undefined;
  const { success, data } = exchangePlanSchema.safeParse(plan);
  if (!success) throw new DamagedCheckpointError(`${folder} has a plan that is not of this version`);
  return data;
};

import { isCurvaturePlanned } from "./curvature-plan.ts";
import { type ExchangePlan, isExchangePlanned } from "./exchange-plan.ts";
import { planCurvature } from "./plan-curvature.ts";
import { type AgreedPlan, planTogether } from "./plan-together.ts";
import type { ProfileInput } from "./profile-steps.ts";

/** Measure what the plans of a job rest on, one after the other, and decide. All ranks call it together. */
export const planRun = async (input: ProfileInput): Promise<AgreedPlan> => {
  const { job } = input;
  const exchange = isExchangePlanned(job) ? await planTogether(input) : undefined;
  const curvature = isCurvaturePlanned(job) ? await planCurvature(input) : undefined;
  const plan: ExchangePlan = { ...exchange?.plan, ...(curvature !== undefined && { curvature: curvature.plan }) };
  return { plan, remark: [exchange?.remark, curvature?.remark].filter((text) => text !== undefined).join("; ") };
};

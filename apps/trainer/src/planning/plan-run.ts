import { expertAxis } from "@skein/job/node";
import { millisecondsText } from "@skein/report";
import {
  type ExchangePlan,
  type ExpertSchedulePlan,
  isDue,
  type PlanBasis,
  type PlanName,
  planNames,
} from "@skein/step/node";
import { measureAllToAlls } from "./measure-exchange.ts";
import { planCurvature } from "./plan-curvature.ts";
import type { PlannedExperts } from "./plan-experts.ts";
import { formatSchedule } from "./plan-expert-schedule.ts";
import { type AgreedPlan, planTogether } from "./plan-together.ts";
import type { ProfileInput } from "./profile-steps.ts";

/** Plans for the expert layers, which are made before the model is built, because the model depends on these plans. */
export interface EarlyPlans {
  readonly schedule?: ExpertSchedulePlan | undefined;
  readonly experts?: PlannedExperts | undefined;
}

/**
 * Makes the plans of a job that are not reused from an earlier plan. The inputs of each plan are measured, one plan
 * after the other. Must be called on all ranks.
 *
 * @param kept Earlier plan, such as the plan in a checkpoint. Everything that it contains is reused.
 * @param decided Plans for the expert layers, made before the model was built.
 * @param basisOf Returns the settings on which a newly made plan depends. The settings are stored with the plan.
 */
export const planRun = async (
  input: ProfileInput,
  kept: ExchangePlan | undefined,
  { schedule, experts }: EarlyPlans,
  basisOf: (name: PlanName) => PlanBasis,
): Promise<AgreedPlan> => {
  const { job } = input;
  const exchange = isDue("exchange", job, kept) ? await planTogether(input) : undefined;
  const curvature = isDue("curvature", job, kept) ? await planCurvature(input) : undefined;
  const expertExchange = isDue("expertExchange", job, kept)
    ? (experts?.allToAll ?? (await measureAllToAlls(input, [expertAxis]))[0]!)
    : undefined;
  const made: { readonly [name in PlanName]: unknown } = {
    expertSchedule: schedule,
    experts,
    exchange,
    curvature,
    expertExchange,
  };
  const names = planNames.filter((name) => made[name] !== undefined);
  const plan: ExchangePlan = {
    ...kept,
    ...exchange?.plan,
    ...(curvature !== undefined && { curvature: curvature.plan }),
    ...(experts !== undefined && { experts: experts.plan }),
    ...(expertExchange !== undefined && { expertExchange }),
    ...(schedule !== undefined && { expertSchedule: schedule }),
    basis: { ...kept?.basis, ...Object.fromEntries(names.map((name) => [name, basisOf(name)])) },
  };
  const exchangeRemark =
    expertExchange &&
    `an exchange of tokens with experts takes ${millisecondsText(expertExchange.startupSeconds)} + ${millisecondsText(expertExchange.secondsPerByte * 2 ** 20)} per MiB`;
  return {
    plan,
    remark: [schedule && formatSchedule(schedule), experts?.remark, exchange?.remark, curvature?.remark, exchangeRemark]
      .filter((text) => text !== undefined)
      .join("; "),
  };
};

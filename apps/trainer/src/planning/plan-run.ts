import { expertAxis } from "../job/mesh.ts";
import { type ExchangePlan, isDue, type PlanBasis, type PlanName, planNames } from "../plans/exchange-plan.ts";
import { measureAllToAlls } from "./measure-exchange.ts";
import { planCurvature } from "./plan-curvature.ts";
import type { PlannedExperts } from "./plan-experts.ts";
import type { ExpertSchedulePlan } from "../plans/expert-schedule-plan.ts";
import { toldSchedule } from "./plan-expert-schedule.ts";
import { type AgreedPlan, planTogether } from "./plan-together.ts";
import type { ProfileInput } from "./profile-steps.ts";

/** What a model is made with. */
export interface DecidedBefore {
  readonly schedule?: ExpertSchedulePlan | undefined;
  readonly experts?: PlannedExperts | undefined;
}

/**
 * Measure what the plans of a job rest on, one after the other, and decide. All ranks call it together.
 *
 * @param kept the parts of an earlier plan that stay.
 * @param decided just now, before there was a model.
 * @param basisOf what a part that is planned now depends on.
 */
export const planRun = async (
  input: ProfileInput,
  kept: ExchangePlan | undefined,
  { schedule, experts }: DecidedBefore,
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
  const ofExchange =
    expertExchange &&
    `tokens travel to experts in ${(1000 * expertExchange.startupSeconds).toPrecision(3)} ms + ${(1000 * expertExchange.secondsPerByte * 2 ** 20).toPrecision(3)} ms per MiB`;
  return {
    plan,
    remark: [schedule && toldSchedule(schedule), experts?.remark, exchange?.remark, curvature?.remark, ofExchange]
      .filter((text) => text !== undefined)
      .join("; "),
  };
};

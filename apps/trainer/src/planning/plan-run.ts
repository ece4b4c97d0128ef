import { expertAxis } from "../step/mesh.ts";
import { isMoveWeighed } from "../placement/placed-anew.ts";
import { isCurvaturePlanned } from "./curvature-plan.ts";
import { type ExchangePlan, isExchangePlanned } from "./exchange-plan.ts";
import { measureAllToAlls } from "./measure-exchange.ts";
import { planCurvature } from "./plan-curvature.ts";
import type { PlannedExperts } from "./plan-experts.ts";
import type { ExpertSchedulePlan } from "./expert-schedule-plan.ts";
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
 * @param known what an earlier attempt has decided, which stays.
 * @param decided just now, before there was a model.
 */
export const planRun = async (
  input: ProfileInput,
  known?: ExchangePlan,
  { schedule, experts }: DecidedBefore = {},
): Promise<AgreedPlan> => {
  const { job } = input;
  const exchange = known?.buckets === undefined && isExchangePlanned(job) ? await planTogether(input) : undefined;
  const curvature = known?.curvature === undefined && isCurvaturePlanned(job) ? await planCurvature(input) : undefined;
  const expertExchange =
    known?.expertExchange === undefined && isMoveWeighed(job)
      ? (experts?.allToAll ?? (await measureAllToAlls(input, [expertAxis]))[0]!)
      : undefined;
  const plan: ExchangePlan = {
    ...known,
    ...exchange?.plan,
    ...(curvature !== undefined && { curvature: curvature.plan }),
    ...(experts !== undefined && { experts: experts.plan }),
    ...(expertExchange !== undefined && { expertExchange }),
    ...(schedule !== undefined && { expertSchedule: schedule }),
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

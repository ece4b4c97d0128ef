import { isCurvaturePlanned } from "./curvature-plan.ts";
import { type ExchangePlan, isExchangePlanned } from "./exchange-plan.ts";
import { measureExpertExchange } from "./measure-exchange.ts";
import { planCurvature } from "./plan-curvature.ts";
import { isScheduleDue } from "./expert-schedule-plan.ts";
import { planExpertSchedule, toldSchedule } from "./plan-expert-schedule.ts";
import { isMoveWeighed } from "../placement/placed-anew.ts";
import { type AgreedPlan, planTogether } from "./plan-together.ts";
import type { ProfileInput } from "./profile-steps.ts";

/**
 * Measure what the plans of a job rest on, one after the other, and decide. All ranks call it together.
 *
 * @param known what an earlier attempt has decided, which stays.
 */
export const planRun = async (input: ProfileInput, known?: ExchangePlan): Promise<AgreedPlan> => {
  const { job } = input;
  const exchange = known === undefined && isExchangePlanned(job) ? await planTogether(input) : undefined;
  const curvature = known === undefined && isCurvaturePlanned(job) ? await planCurvature(input) : undefined;
  const expertExchange =
    known?.expertExchange === undefined && isMoveWeighed(job) ? await measureExpertExchange(input) : undefined;
  const expertSchedule = isScheduleDue(job, known?.expertSchedule) ? await planExpertSchedule(input) : undefined;
  const plan: ExchangePlan = {
    ...known,
    ...exchange?.plan,
    ...(curvature !== undefined && { curvature: curvature.plan }),
    ...(expertExchange !== undefined && { expertExchange }),
    ...(expertSchedule !== undefined && { expertSchedule }),
  };
  const ofExperts =
    expertExchange &&
    `tokens travel to experts in ${(1000 * expertExchange.startupSeconds).toPrecision(3)} ms + ${(1000 * expertExchange.secondsPerByte * 2 ** 20).toPrecision(3)} ms per MiB`;
  return {
    plan,
    remark: [exchange?.remark, curvature?.remark, ofExperts, expertSchedule && toldSchedule(expertSchedule)]
      .filter((text) => text !== undefined)
      .join("; "),
  };
};

import type { GroupSelectionOptions } from "@skein/collectives";
import {
  collectiveSeconds,
  type LinearCollectiveModel,
  collectiveModelOfGroup,
  type PiecewiseCollectiveModel,
} from "@skein/cost-model";
import { fitCollectiveModel } from "@skein/cost-model/calibration";
import type { HardwareFile } from "@skein/cost-model/hardware";
import { stepProgram } from "@skein/cost-model/pricing";
import type { BucketedPlan, PricedTimes, ProfiledJob } from "skein-train/profiling";
import { eachByItself } from "./candidates.ts";
import { type Message, messagesOf } from "./groupings.ts";
import { groupsOn, pricersOn, widestGroup } from "./groups-on.ts";
import { simulateStep } from "./simulate-step.ts";

/**
 * Message sizes in bytes at which a run measures collectives before it plans its exchange. The prediction fits its
 * linear cost model to predicted times for the same sizes.
 */
const sizes = [2 ** 12, 2 ** 14, 2 ** 16, 2 ** 18, 2 ** 20, 2 ** 22];

const lineOf = (model: PiecewiseCollectiveModel): LinearCollectiveModel =>
  fitCollectiveModel(sizes.map((bytes) => ({ bytes, seconds: collectiveSeconds(model, bytes) })));

/**
 * Computes the times that planners need. A run measures these times; here they are predicted.
 *
 * @param messages Messages of a step that exchanges each gradient separately and dense.
 * @param group Group of all ranks.
 */
export const pricedTimes = (
  messages: readonly Message[],
  group: GroupSelectionOptions,
  { device, links }: HardwareFile,
): PricedTimes => {
  const ready = new Map(messages.map(({ bucket, readySeconds }) => [bucket, readySeconds]));
  return {
    readySeconds: (bucket) => ready.get(bucket),
    allReduce: lineOf(collectiveModelOfGroup(group, "all-reduce", device.readBack)),
    allGather: lineOf(collectiveModelOfGroup(group, "all-gather", device.readBack)),
    // k concurrent flows are slower than a single flow by the factor k + (k − 1) · penaltyPerFlow.
    slowdown: [1, 2 + links.contention.penaltyPerFlow],
  };
};

/**
 * Plans the exchange from predicted times, as a job does from measured times before its first step. Undefined if the
 * job file sets the exchange.
 */
export const planOn = async (job: ProfiledJob, hardware: HardwareFile): Promise<BucketedPlan | undefined> => {
  if (job.facts.exchange !== "planned") return undefined;
  const dense = await job.with(eachByItself("wait-free"));
  const groups = groupsOn(dense, hardware);
  const program = stepProgram(dense.step(), { device: hardware.device, collectives: pricersOn(dense, hardware) });
  const { device } = hardware;
  return job.planBy({
    ...pricedTimes(messagesOf(program), widestGroup(dense.gradients(), groups), hardware),
    experts: () => ({
      spans: simulateStep(dense, program, hardware).ranks[0]!.spans,
      allToAll: lineOf(collectiveModelOfGroup(groups["expert"]!, "all-to-all", device.readBack)),
    }),
  });
};

import {
  collectiveSeconds,
  fitLinkModel,
  type HardwareFile,
  type LinkModel,
  linkModelOfGroup,
  type PiecewiseLinkModel,
  stepProgram,
} from "@skein/cost-model";
import type { ExchangePlan, ProfiledJob } from "skein-train/profiling";
import { messagesOf } from "../plan/groupings.ts";
import { groupsOn, pricersOn } from "./groups-on.ts";

/** What each gradient travels by itself in, dense, as soon as it is ready. */
const eachByItself = ['compression={"kind":"identity"}', 'overlap="wait-free"', 'buckets={"kind":"per-tensor"}', 'priorities="none"'];

/** Sizes that runs measure before they plan: a line through the prices of these is the line they would lay. */
const sizes = [2 ** 12, 2 ** 14, 2 ** 16, 2 ** 18, 2 ** 20, 2 ** 22];

export const lineOf = (model: PiecewiseLinkModel): LinkModel =>
  fitLinkModel(sizes.map((bytes) => ({ bytes, seconds: collectiveSeconds(model, bytes) })));

/** The exchange that a job would decide on before its first step on this hardware; undefined where its file says it all. */
export const planOn = async (job: ProfiledJob, hardware: HardwareFile): Promise<ExchangePlan | undefined> => {
  if (job.facts.exchange !== "planned") return undefined;
  const dense = await job.with(eachByItself);
  const groups = groupsOn(dense, hardware);
  const program = stepProgram(dense.step(), { device: hardware.device, collectives: pricersOn(dense, hardware) });
  const messages = messagesOf(program).toSorted((a, b) => a.bucket - b.bucket);
  const group = groups["data"]!; // along which gradients are exchanged
  const { readBack } = hardware.device;
  return job.planBy({
    readySeconds: messages.map(({ readySeconds }) => readySeconds),
    allReduce: lineOf(linkModelOfGroup(group, "all-reduce", readBack)),
    allGather: lineOf(linkModelOfGroup(group, "all-gather", readBack)),
    // k flows take k · b + (k − 1) · η per byte each.
    slowdown: [1, 2 + hardware.links.contention.penaltyPerFlow],
  });
};

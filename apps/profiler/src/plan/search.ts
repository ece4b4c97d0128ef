import {
  type GroupExchange,
  type HardwareFile,
  kernelPricer,
  collectiveModelOfGroup,
  rebucket,
  rebucketHalves,
  sentBytesOf,
  type StepHardware,
  withExchanges,
} from "@skein/cost-model";
import { byteLength, SkeinError } from "@skein/tensor-core";
import type { ProfiledJob } from "skein-train/profiling";
import { groupsOn, pricersOn, widestGroup } from "../predict/groups-on.ts";
import { pricedTimes } from "../predict/plan-on.ts";
import { type BaseSteps, profileOf } from "./base-steps.ts";
import { type Bound, boundsOf } from "./bounds.ts";
import { dense, overlaps, type Settings, setOf } from "../predict/candidates.ts";
import { type ExchangePrices, exchangePrices } from "./exchange-prices.ts";
import {
  asAmong,
  type Grouping,
  messagesOf,
  plannedGroupings,
  sentGroups,
  sizedGroupings,
} from "../predict/groupings.ts";
import { halvedGroupings } from "./halved-groupings.ts";
import { type Scored, scoreStep } from "./score.ts";

/** What was looked at. */
export interface SearchSpace {
  /** That the job can be trained with, the dense one included. */
  readonly compressions: number;
  /** Of steps in halves: plans whose closed form was priced, and those of them that were simulated. */
  readonly halves: { readonly priced: number; readonly simulated: number };
}

export interface SearchResult {
  /** Fastest first. */
  readonly scored: readonly Scored[];
  readonly space: SearchSpace;
  /** What no job runs. */
  readonly bounds: readonly Bound[];
  /** What was left out, and why: a line each. */
  readonly leftOut: readonly string[];
}

/** What a search is made with. */
export interface SearchInput {
  /** With the number of ranks that is looked at. */
  readonly job: ProfiledJob;
  readonly hardware: HardwareFile;
  readonly bases: BaseSteps;
  /** That are looked at; `own` is that of the job. */
  readonly compressions: readonly (Settings | "own")[];
}

/** What a configuration changes of the compression. */
const named = (compression: Settings | "own"): Settings => (compression === "own" ? {} : { compression });

/**
 * Score ways to exchange a job's gradients on some hardware: compressions, when messages travel, and which gradients
 * travel together.
 *
 * No step is traced: dense ones are bucketed anew from the two that `bases` holds, and what an exchange of a
 * compression takes by itself is laid into them.
 *
 * Cost: a trace of milliseconds for each bucket of other shapes, and a simulation for each configuration.
 */
export const searchConfigurations = async ({
  job,
  hardware,
  bases,
  compressions,
}: SearchInput): Promise<SearchResult> => {
  const { device } = hardware;
  const pricers = pricersOn(job, hardware);
  const pricing: StepHardware = { device, collectives: pricers };
  const priceKernel = kernelPricer(device);
  const groups = groupsOn(job, hardware);
  const gradients = job.gradients();
  const group = widestGroup(gradients, groups);
  const messages = messagesOf(bases.whole);
  const asSent = sentGroups(gradients, messages);
  const apart = (bucket: string): string => gradients[Number(bucket)]!.axis;
  const profile = asAmong(group, profileOf(bases), (bucket) => groups[apart(bucket)]!);
  const times = pricedTimes(messages, group, hardware);
  const { allReduce, slowdown } = times;
  const gradientBytes = gradients.map(({ shape }) => byteLength({ dtype: "f32", shape }));
  const sized = sizedGroupings(gradientBytes).map((one) => ({ ...one, groups: asSent(one.groups) }));
  const each = sized[0]!; // by itself
  const scored: Scored[] = [];
  const leftOut: string[] = [];

  const score = (
    compression: Settings | "own",
    prices: ExchangePrices | undefined,
    { buckets, priorities, groups: together }: Grouping,
  ): void => {
    const schedules = priorities === "none" && buckets["kind"] !== "mg-wfbp" ? overlaps : (["wait-free"] as const);
    for (const overlap of schedules) {
      const settings = { ...named(compression), overlap, buckets, priorities };
      if (prices === undefined) {
        const lanes = priorities === "spread" ? together.map((_, i) => i % 2) : undefined;
        const program = rebucket(bases.whole, {
          groups: together,
          overlap,
          priorities: lanes,
          priceKernel,
          collectives: pricers,
        });
        scored.push(scoreStep(job, hardware, program, { settings }));
      } else {
        const exchanges = together.map((one, i): GroupExchange => {
          return { buckets: one, exchange: prices(one), priority: priorities === "spread" ? i % 2 : 0 };
        });
        scored.push(scoreStep(job, hardware, withExchanges(bases.whole, exchanges, overlap), { settings, exchanges }));
      }
    }
  };

  let halves = { priced: 0, simulated: 0 };
  const scoreDense = (): void => {
    for (const grouping of [...sized, ...plannedGroupings(profile, allReduce, { slowdown, apart })])
      score(dense, undefined, grouping);
    if ("refused" in bases.halves) {
      leftOut.push(`steps in halves: ${bases.halves.refused}`);
      return;
    }
    const { priced, groupings } = halvedGroupings(gradientBytes, { profile, allReduce, asSent });
    for (const { buckets, priorities, groups: together } of groupings) {
      const program = rebucketHalves(bases.halves, { groups: together, priceKernel, collectives: pricers });
      scored.push(
        scoreStep(job, hardware, program, { settings: { compression: dense, overlap: "dear", buckets, priorities } }),
      );
    }
    halves = { priced, simulated: groupings.length };
  };

  let looked = 0;
  for (const compression of compressions) {
    if (compression === dense) {
      looked++;
      scoreDense();
      continue;
    }
    const settings = { ...named(compression), overlap: "wait-free", buckets: each.buckets, priorities: "none" };
    let compressed: ProfiledJob;
    try {
      compressed = await job.with(setOf(settings));
    } catch (error) {
      if (!(error instanceof SkeinError) || error.kind !== "user") throw error;
      leftOut.push(`${JSON.stringify(compression)}: ${error.message.split("\n")[0]}`);
      continue;
    }
    looked++;
    const plan = compressed.facts.compression === "lags" ? compressed.planBy(times) : undefined;
    const prices = exchangePrices(compressed, pricing, plan);
    if (plan !== undefined) {
      score(compression, prices, each); // a density for each tensor
      continue;
    }
    const { worldSize } = group;
    const likeAllReduce = (bucket: number): number =>
      (sentBytesOf(prices([bucket])) * worldSize) / (2 * (worldSize - 1));
    const sent = {
      tensors: profile.tensors.map((tensor) => ({ ...tensor, bytes: likeAllReduce(Number(tensor.path)) })),
    };
    for (const grouping of [...sized, ...plannedGroupings(sent, allReduce, { slowdown, apart })])
      score(compression, prices, grouping);
  }
  return {
    scored: scored.toSorted((a, b) => a.seconds - b.seconds),
    space: { compressions: looked, halves },
    bounds:
      "refused" in bases.halves ? [] : boundsOf(profile, collectiveModelOfGroup(group, "all-reduce", device.readBack)),
    leftOut,
  };
};

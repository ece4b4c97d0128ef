import {
  type GroupExchange,
  kernelPricer,
  rebucket,
  rebucketHalves,
  sentBytesOf,
  type StepHardware,
  withExchanges,
} from "@skein/cost-model/pricing";
import type { HardwareFile } from "@skein/cost-model/hardware";
import { collectiveModelOfGroup } from "@skein/cost-model";
import { byteLength, SkeinError } from "@skein/tensor-core";
import type { ProfiledJob } from "skein-train/profiling";
import { groupsOn, pricersOn, widestGroup } from "../predict/groups-on.ts";
import { pricedTimes } from "../predict/plan-on.ts";
import { type BaseSteps, profileOf } from "./base-steps.ts";
import { type Bound, boundsOf } from "./bounds.ts";
import { dense, overlaps, type Settings, setOf } from "../predict/candidates.ts";
import { type ExchangePrices, exchangePrices } from "./exchange-prices.ts";
import {
  scaleToGroup,
  type Grouping,
  messagesOf,
  plannedGroupings,
  sentGroups,
  sizedGroupings,
} from "../predict/groupings.ts";
import { halvedGroupings } from "./halved-groupings.ts";
import { type Scored, scoreStep } from "./score.ts";

/** Size of a search: numbers of compressions and of DeAR plans that were considered. */
export interface SearchSpace {
  /** Number of compressions that the job supports, including dense (no compression). */
  readonly compressions: number;
  /** Number of DeAR plans that were evaluated with the closed form, and number of plans that were simulated. */
  readonly halves: { readonly priced: number; readonly simulated: number };
}

export interface SearchResult {
  /** Configurations with predicted step times, fastest first. */
  readonly scored: readonly Scored[];
  readonly space: SearchSpace;
  /** Bounds from theoretical exchanges that no job can run. */
  readonly bounds: readonly Bound[];
  /** Skipped configurations, each as a line with the reason. */
  readonly leftOut: readonly string[];
}

/** Parameters of a search. */
export interface SearchInput {
  /** The job, already changed to the number of ranks for which the search runs. */
  readonly job: ProfiledJob;
  readonly hardware: HardwareFile;
  readonly bases: BaseSteps;
  /** Compressions to try. `own`: the compression of the job. */
  readonly compressions: readonly (Settings | "own")[];
}

/** Returns the job settings of a compression. */
const named = (compression: Settings | "own"): Settings => (compression === "own" ? {} : { compression });

/**
 * Scores exchanges of a job's gradients on given hardware. The search varies the compression, the times at which
 * messages are sent, and the grouping of gradients into messages.
 *
 * The search does not trace complete steps. Dense steps are derived from the two steps in `bases` by changing their
 * buckets. For compressed steps, the exchange of each bucket is traced separately and inserted into these steps.
 *
 * Cost: one trace per bucket with distinct shapes, in milliseconds, and one simulation per configuration.
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
  const toSentGroups = sentGroups(gradients, messages);
  const axisOf = (bucket: string): string => gradients[Number(bucket)]!.axis;
  const profile = scaleToGroup(group, profileOf(bases), (bucket) => groups[axisOf(bucket)]!);
  const times = pricedTimes(messages, group, hardware);
  const { allReduce, slowdown } = times;
  const gradientBytes = gradients.map(({ shape }) => byteLength({ dtype: "f32", shape }));
  const sized = sizedGroupings(gradientBytes).map((one) => ({ ...one, groups: toSentGroups(one.groups) }));
  const perTensor = sized[0]!;
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
    for (const grouping of [...sized, ...plannedGroupings(profile, allReduce, { slowdown, mergeClassOf: axisOf })])
      score(dense, undefined, grouping);
    if ("refused" in bases.halves) {
      leftOut.push(`steps in halves: ${bases.halves.refused}`);
      return;
    }
    const { priced, groupings } = halvedGroupings(gradientBytes, { profile, allReduce, toSentGroups });
    for (const { buckets, priorities, groups: together } of groupings) {
      const program = rebucketHalves(bases.halves, { groups: together, priceKernel, collectives: pricers });
      scored.push(
        scoreStep(job, hardware, program, { settings: { compression: dense, overlap: "dear", buckets, priorities } }),
      );
    }
    halves = { priced, simulated: groupings.length };
  };

  let numCompressions = 0;
  for (const compression of compressions) {
    if (compression === dense) {
      numCompressions++;
      scoreDense();
      continue;
    }
    const settings = { ...named(compression), overlap: "wait-free", buckets: perTensor.buckets, priorities: "none" };
    let compressed: ProfiledJob;
    try {
      compressed = await job.with(setOf(settings));
    } catch (error) {
      if (!(error instanceof SkeinError) || error.kind !== "user") throw error;
      leftOut.push(`${JSON.stringify(compression)}: ${error.message.split("\n")[0]}`);
      continue;
    }
    numCompressions++;
    const plan = compressed.facts.compression === "lags" ? compressed.planBy(times) : undefined;
    const prices = exchangePrices(compressed, pricing, plan);
    if (plan !== undefined) {
      score(compression, prices, perTensor); // with a density per tensor
      continue;
    }
    const { worldSize } = group;
    const allReduceBytes = (bucket: number): number =>
      (sentBytesOf(prices([bucket])) * worldSize) / (2 * (worldSize - 1));
    const sent = {
      tensors: profile.tensors.map((tensor) => ({ ...tensor, bytes: allReduceBytes(Number(tensor.path)) })),
    };
    for (const grouping of [...sized, ...plannedGroupings(sent, allReduce, { slowdown, mergeClassOf: axisOf })])
      score(compression, prices, grouping);
  }
  return {
    scored: scored.toSorted((a, b) => a.seconds - b.seconds),
    space: { compressions: numCompressions, halves },
    bounds:
      "refused" in bases.halves ? [] : boundsOf(profile, collectiveModelOfGroup(group, "all-reduce", device.readBack)),
    leftOut,
  };
};

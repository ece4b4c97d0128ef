import { type Aggregator, bucketOf, type BucketPlan, specsByPath } from "@skein/compressors";
import {
  fitLinkModel,
  type GradientProfile,
  type LagsOptions,
  type LinkModel,
  mergeGreedy,
  mergeOptimally,
  onePerTensor,
  planLags,
  planSimultaneous,
  simultaneousTimeline,
  timelineOf,
} from "@skein/cost-model";
import type { ExchangePlan } from "./exchange-plan.ts";
import type { CompressionJob, Job } from "../job.ts";
import { dataAxis, stateSpecs } from "../train-state.ts";
import { agreement } from "./agree.ts";
import { measureCollectives } from "./measure-collectives.ts";
import { measureProfile, type ProfileInput, profileFrom, profileNumbers } from "./measure-profile.ts";

/** A plan, and a word on it for people. */
export interface AgreedPlan {
  readonly plan: ExchangePlan;
  readonly remark: string;
}

/** Bytes of an all-reduce that costs a rank what the compressor sends for this tensor. */
const asAllReduce = (compressor: Aggregator, path: string, params: unknown, worldSize: number): number => {
  const { shape } = specsByPath(params).get(path)!;
  return (compressor.bytesSent(bucketOf([{ path, shape }]), worldSize) * worldSize) / (2 * (worldSize - 1));
};

const densitiesOf = (
  { leastDensity, mostDensity }: CompressionJob & { readonly kind: "lags" },
  profile: GradientProfile,
  options: Omit<LagsOptions, "leastDensity">,
): ExchangePlan["densities"] =>
  Object.fromEntries(planLags(profile, { ...options, leastDensity }).map(({ path, density }) => [path, Math.min(density, mostDensity)]));

const milliseconds = (seconds: number): string => `${(seconds * 1000).toPrecision(3)} ms`;

/**
 * Measure a few steps and the collectives of the job, and decide how gradients are merged, or how densely each is sent. Ranks agree on what rank 0
 * has measured, so all decide alike.
 */
export const planTogether = async (input: ProfileInput): Promise<AgreedPlan> => {
  const { job, parts, backend, communicators } = input;
  const { params } = stateSpecs(parts);
  const agree = agreement(backend, communicators, dataAxis);
  try {
    const own = await measureProfile(input);
    const dense = profileFrom(await agree(profileNumbers(own, params)), params);
    const mostBytes = dense.tensors.reduce((sum, { bytes }) => sum + bytes, 0);
    const fit = async (kind: "all-reduce" | "all-gather"): Promise<LinkModel> => {
      const fitted = fitLinkModel(await measureCollectives(kind, dataAxis, { backend, communicators, mostBytes }));
      const [startupSeconds, secondsPerByte] = await agree([fitted.startupSeconds, fitted.secondsPerByte]);
      return { startupSeconds: startupSeconds!, secondsPerByte: secondsPerByte! };
    };
    const allReduce = await fit("all-reduce");
    const { compression, ranks } = job;
    const densities =
      compression.kind === "lags"
        ? densitiesOf(compression, dense, { worldSize: ranks, allReduce, allGather: await fit("all-gather") })
        : undefined;
    const compressor = parts.compressorAt(Number.MAX_SAFE_INTEGER);
    const profile = {
      tensors: dense.tensors.map((tensor) => ({ ...tensor, bytes: asAllReduce(compressor, tensor.path, params, job.ranks) })),
    };
    const buckets = bucketsFor(job, profile, allReduce);
    const exposed = (plan: BucketPlan): string =>
      milliseconds((job.priorities === "spread" ? simultaneousTimeline : timelineOf)(profile, plan, allReduce).exposedSeconds);
    return {
      plan: { buckets, ...(densities && { densities }) },
      remark: `${dense.tensors.length} gradients in ${buckets.length} buckets; an all-reduce takes ${milliseconds(allReduce.startupSeconds)} + ${milliseconds(allReduce.secondsPerByte * 2 ** 20)} per MiB; expected exposed communication ${exposed(buckets)}, with a bucket per tensor ${exposed(onePerTensor(profile))}`,
    };
  } finally {
    agree.release();
  }
};

const bucketsFor = ({ buckets }: Job, profile: GradientProfile, link: LinkModel): BucketPlan => {
  if (buckets.kind !== "mg-wfbp") return onePerTensor(profile);
  switch (buckets.plan) {
    case "exact":
      return mergeOptimally(profile, link);
    case "greedy":
      return mergeGreedy(profile, link);
    case "simultaneous":
      return planSimultaneous(profile, link);
  }
};

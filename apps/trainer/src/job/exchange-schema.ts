import { z } from "zod";
import type { CrossFieldFault } from "./cross-field-fault.ts";
import { expertsOf } from "./experts-of.ts";
import type { BucketsJob, CompressionJob, Job, OverlapName, PrioritiesName } from "./job.ts";
import { ownModule, ownProgram, programRule } from "./own-schema.ts";
import { count } from "./ranges.ts";

const share = z.number().gt(0).max(1);
const shareOfPast = z.number().min(0).lt(1);

const around = {
  warmupSteps: z.int().min(0).default(0).describe("Steps at the beginning whose gradients travel dense."),
  denseBelow: z.int().min(0).default(0).describe("Tensors with fewer elements travel dense."),
  denseVectors: z.boolean().default(false).describe("Biases, gains and other vectors travel dense."),
  momentum: shareOfPast
    .default(0)
    .describe(
      "Exchange the running mean of gradients, with this share of the past, in place of gradients; use optimizer: {kind: sgd}.",
    ),
};
const errorFeedback = z.boolean().default(true).describe("Keep what was not sent and add it to the next gradient.");
const densityWarmup = z
  .strictObject({
    densities: z
      .array(share)
      .min(1)
      .max(100)
      .describe("Densities to begin with, such as [0.25, 0.0625, 0.015625, 0.004]."),
    stepsEach: count.describe("Steps with each of them."),
  })
  .optional()
  .describe("Send more at the beginning.");
const sparse = {
  density: share.default(0.01).describe("Part of the gradient's entries that is sent."),
  densityWarmup,
  ...around,
};
const rank = count.default(4).describe("Rank of the approximation of each matrix.");
const blockSize = count.default(256).describe("Elements that share a scale.");
const qsgd = {
  kind: z.literal("qsgd"),
  levels: z.int().min(1).max(127).default(127).describe("Steps between 0 and the norm of a bucket."),
  bucketSize: count.default(128).describe("Elements that share a norm."),
};
const values = z
  .discriminatedUnion("kind", [z.strictObject({ kind: z.literal("eight-bit"), blockSize }), z.strictObject(qsgd)])
  .optional()
  .describe("Compress the values that are sent, too. Default: as f32.");

export const compressionSchema: z.ZodType<CompressionJob> = z
  .discriminatedUnion("kind", [
    z.strictObject({
      kind: z.literal("identity"),
      chunkBytes: count.optional().describe("Send a bucket in pieces of at most so many bytes. Default: in one."),
    }),
    z.strictObject({ kind: z.enum(["top-k", "random-k"]), values, errorFeedback, ...sparse }),
    z.strictObject({ kind: z.enum(["gaussian-k", "g-top-k", "ok-top-k"]), errorFeedback, ...sparse }),
    z.strictObject({
      kind: z.literal("ms-top-k"),
      samplings: z.int().min(1).max(24).default(24).describe("Halvings of the range in which the threshold is sought."),
      values,
      errorFeedback,
      ...sparse,
    }),
    z.strictObject({
      kind: z.literal("hierarchical-top-k"),
      ranksPerHost: count.describe("Neighbouring ranks that share a host; a divisor of ranks."),
      errorFeedback,
      ...sparse,
    }),
    z.strictObject({
      kind: z.literal("threshold"),
      threshold: z.number().gt(0).describe("Least magnitude that is sent."),
      capacity: share.default(0.1).describe("Greatest part of the entries that is sent."),
      errorFeedback,
      ...around,
    }),
    z.strictObject({
      kind: z.literal("dgc"),
      ...sparse,
      momentum: shareOfPast.default(0.9).describe("Of the momentum correction; use optimizer: {kind: sgd}."),
      clipNorm: z
        .number()
        .gt(0)
        .optional()
        .describe(
          "Norm that the mean gradient of a bucket may have; each rank clips its own to that times the root of ranks.",
        ),
    }),
    z.strictObject({ kind: z.literal("ef21"), ...sparse }),
    z.strictObject({
      kind: z.literal("lags"),
      leastDensity: share.default(0.001),
      mostDensity: share
        .default(0.1)
        .describe(
          "Densities of each tensor lie between the two, as its backward pass leaves time; where dense fits, it travels dense.",
        ),
      errorFeedback,
      ...around,
    }),
    z.strictObject({ kind: z.literal("majority-vote"), ...around }),
    z.strictObject({
      kind: z.literal("scaled-sign"),
      perTensor: z.boolean().default(false).describe("A scale for each tensor, not for each bucket."),
      errorFeedback,
      ...around,
    }),
    z.strictObject({
      kind: z.literal("one-bit"),
      blockSize: count.default(512).describe("Elements that share two values."),
      errorFeedback,
      ...around,
    }),
    z.strictObject({ ...qsgd, ...around }),
    z.strictObject({
      kind: z.literal("tern-grad"),
      clip: z
        .number()
        .min(0)
        .default(2.5)
        .describe(
          "Clip each tensor at so many standard deviations first, as in the paper; 0 for no clipping, which is unbiased.",
        ),
      ...around,
    }),
    z.strictObject({
      kind: z.enum(["eight-bit", "agoq"]),
      blockSize,
      errorFeedback: errorFeedback.default(false),
      ...around,
    }),
    z.strictObject({
      kind: z.enum(["power-sgd", "acp-sgd"]),
      rank,
      minimumCompression: z
        .number()
        .min(0)
        .default(2)
        .describe("Matrices that would not shrink by this factor travel dense."),
      errorFeedback,
      ...around,
    }),
    z
      .strictObject({
        ...ownModule,
        errorFeedback: z
          .boolean()
          .optional()
          .describe(
            "Keep what was not sent and add it to the next gradient. Default: where it says that it is biased.",
          ),
        ...around,
      })
      .describe("What a function of yours returns, a codec or an aggregator: export default (context, options) => …."),
    z.strictObject({ ...ownProgram, errorFeedback: z.boolean().optional(), ...around }).describe(programRule),
  ])
  .describe("How gradients are compressed before they are sent.");

const profileSteps = count.default(10).describe("Steps that are timed before the run, on a copy of the state.");

export const bucketsSchema: z.ZodType<BucketsJob> = z
  .discriminatedUnion("kind", [
    z.strictObject({ kind: z.literal("per-tensor") }),
    z.strictObject({
      kind: z.literal("fixed-size"),
      bytes: count.default(4 * 1024 * 1024).describe("Gradient bytes per bucket, at most, but for larger tensors."),
    }),
    z.strictObject({
      kind: z.literal("mg-wfbp"),
      plan: z
        .enum(["exact", "greedy", "simultaneous"])
        .default("exact")
        .describe(
          "The best merging under the model; that of the paper's greedy rule; or, with priorities: spread, for two collectives at a time.",
        ),
      profileSteps,
    }),
    z.strictObject({ kind: z.literal("moe-idle"), profileSteps }),
    z.strictObject({
      kind: z.literal("tuned"),
      trials: count.default(10).describe("Sizes to try, by Bayesian optimisation."),
      stepsEach: z
        .int()
        .min(2)
        .default(10)
        .describe("Steps with each size, of which the first is not counted; as many come before."),
      leastBytes: count.default(64 * 1024),
      mostBytes: count.default(64 * 1024 * 1024),
    }),
  ])
  .describe("How gradients are merged into messages.");

export const overlapSchema: z.ZodType<OverlapName> = z
  .enum(["none", "wait-free", "dear"])
  .describe(
    "When gradients travel: after the backward pass; during it; or in halves, reduce-scatter during it and all-gather during the next forward pass.",
  );

export const prioritiesSchema: z.ZodType<PrioritiesName> = z
  .enum(["none", "forward", "spread"])
  .describe(
    "Which collectives go first: the first to be ready; those whose parameters are needed first; or two at a time.",
  );

/** Rules about how gradients are exchanged. */
export const exchangeFaults = ({
  ranks,
  compression,
  buckets,
  overlap,
  priorities,
  precision,
  optimizer,
  mesh,
  model,
}: Job): CrossFieldFault[] => {
  const faults: CrossFieldFault[] = [];
  const fault = (path: readonly string[], rule: string): void => void faults.push({ path, rule });
  if (compression.kind === "hierarchical-top-k" && ranks % compression.ranksPerHost !== 0)
    fault(
      ["compression", "ranksPerHost"],
      `${ranks} ranks do not divide among hosts of ${compression.ranksPerHost}; use a divisor of ${ranks}`,
    );
  if (
    optimizer.kind !== "sgd" &&
    (compression.kind === "dgc" || (compression.kind !== "identity" && compression.momentum > 0))
  )
    fault(
      ["optimizer", "kind"],
      `compression: ${compression.kind} has a momentum of its own, so that of ${optimizer.kind} would count twice; use optimizer: {kind: sgd}`,
    );
  if (buckets.kind === "tuned" && compression.kind !== "identity")
    fault(
      ["buckets", "kind"],
      `tuned buckets change while training runs, but ${compression.kind} keeps residuals per bucket; use compression: {kind: identity} or another kind of buckets`,
    );
  if (buckets.kind === "tuned" && buckets.leastBytes > buckets.mostBytes)
    fault(
      ["buckets", "leastBytes"],
      `${buckets.leastBytes} bytes are more than mostBytes, ${buckets.mostBytes}; lower it`,
    );
  if (buckets.kind === "mg-wfbp" && (buckets.plan === "simultaneous") !== (priorities === "spread"))
    fault(
      ["buckets", "plan"],
      `plan: ${buckets.plan} is for ${buckets.plan === "simultaneous" ? "two collectives at a time" : "one collective at a time"}, but priorities is ${priorities}; use plan: simultaneous with priorities: spread, or neither`,
    );
  if (buckets.kind === "moe-idle") {
    if (mesh.expert === 1 || expertsOf({ model }) === undefined)
      fault(
        ["buckets", "kind"],
        "moe-idle sends gradients while no tokens travel to the experts of other ranks, but here none do; use model.experts with mesh.expert above 1, or buckets: {kind: mg-wfbp}",
      );
    if (overlap !== "wait-free")
      fault(
        ["overlap"],
        `buckets: moe-idle plans what travels during the backward pass, but overlap is ${overlap}; use overlap: wait-free, or buckets: {kind: fixed-size}`,
      );
    if (priorities !== "none")
      fault(
        ["priorities"],
        `buckets: moe-idle lets tokens go first and gradients one after the other, but priorities is ${priorities}; use priorities: none, or buckets: {kind: fixed-size}`,
      );
  }
  if (compression.kind === "lags" && buckets.kind !== "per-tensor")
    fault(
      ["buckets", "kind"],
      `compression: lags has a density for each tensor, not for ${buckets.kind} buckets; use buckets: {kind: per-tensor}`,
    );
  if (overlap === "dear" && precision.kind === "mixed-f16")
    fault(
      ["overlap"],
      `with overlap: dear an update is made in the next step, too late for precision: ${precision.kind} to leave it out; use overlap: wait-free`,
    );
  if (overlap === "dear" && compression.kind !== "identity") {
    const { kind, warmupSteps } = compression;
    const changes =
      kind === "acp-sgd" ||
      warmupSteps > 0 ||
      ("densityWarmup" in compression && compression.densityWarmup !== undefined);
    if (changes)
      fault(
        ["overlap"],
        `overlap: dear carries half of an exchange into the next step, which ${kind} then does in another way; use overlap: wait-free${kind === "acp-sgd" ? "" : ", or leave the warm-up out"}`,
      );
  }
  return faults;
};

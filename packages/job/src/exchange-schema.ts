import { z } from "zod";
import { ownModule, ownProgram, programRule } from "./own-schema.ts";
import { count } from "./ranges.ts";

const share = z.number().gt(0).max(1);
const shareOfPast = z.number().min(0).lt(1);

const around = {
  warmupSteps: z.int().min(0).default(0).describe("Number of first steps whose gradients are sent dense."),
  denseBelow: z.int().min(0).default(0).describe("Tensors with fewer elements are sent dense."),
  denseVectors: z.boolean().default(false).describe("Send biases, gains and other vectors dense."),
  momentum: shareOfPast
    .default(0)
    .describe(
      "Exchange the momentum, a running mean of gradients with this decay, instead of gradients; use optimizer: {kind: sgd}. 0: no momentum.",
    ),
};
const errorFeedback = z
  .boolean()
  .default(true)
  .describe("Error feedback: add the unsent part of a gradient to the next gradient.");
const densityWarmup = z
  .strictObject({
    densities: z
      .array(share)
      .min(1)
      .max(100)
      .describe("Densities of the warm-up in order, such as [0.25, 0.0625, 0.015625, 0.004]."),
    stepsEach: count.describe("Steps with each density."),
  })
  .optional()
  .describe("Density warm-up: higher densities in the first steps. Default: no warm-up.");
const sparse = {
  density: share.default(0.01).describe("Share of the gradient's entries that are sent."),
  densityWarmup,
  ...around,
};
const rank = count.default(4).describe("Rank of the low-rank approximation of each matrix.");
const blockSize = count.default(256).describe("Number of elements that share a scale.");
const qsgd = {
  kind: z.literal("qsgd"),
  levels: z
    .int()
    .min(1)
    .max(127)
    .default(127)
    .describe("Number of quantization levels between 0 and the norm of a bucket."),
  bucketSize: count.default(128).describe("Number of elements that share a norm."),
};
const values = z
  .discriminatedUnion("kind", [z.strictObject({ kind: z.literal("eight-bit"), blockSize }), z.strictObject(qsgd)])
  .optional()
  .describe("Also quantize the values that are sent. Default: sent as f32.");

export const compressionSchema = z
  .discriminatedUnion("kind", [
    z.strictObject({
      kind: z.literal("identity"),
      chunkBytes: count
        .optional()
        .describe("Split a bucket into chunks of at most this many bytes. Default: one chunk."),
    }),
    z.strictObject({ kind: z.enum(["top-k", "random-k"]), values, errorFeedback, ...sparse }),
    z.strictObject({ kind: z.enum(["gaussian-k", "g-top-k", "ok-top-k"]), errorFeedback, ...sparse }),
    z.strictObject({
      kind: z.literal("ms-top-k"),
      samplings: z
        .int()
        .min(1)
        .max(24)
        .default(24)
        .describe("Number of bisection steps in the search for the threshold."),
      values,
      errorFeedback,
      ...sparse,
    }),
    z.strictObject({
      kind: z.literal("hierarchical-top-k"),
      ranksPerHost: count.describe("Number of consecutive ranks on a host; a divisor of ranks."),
      errorFeedback,
      ...sparse,
    }),
    z.strictObject({
      kind: z.literal("threshold"),
      threshold: z.number().gt(0).describe("Minimum magnitude of entries that are sent."),
      capacity: share.default(0.1).describe("Maximum share of the entries that are sent."),
      errorFeedback,
      ...around,
    }),
    z.strictObject({
      kind: z.literal("dgc"),
      ...sparse,
      momentum: shareOfPast.default(0.9).describe("Momentum of the momentum correction; use optimizer: {kind: sgd}."),
      clipNorm: z
        .number()
        .gt(0)
        .optional()
        .describe(
          "Maximum norm of the mean gradient of a bucket; each rank clips its own gradient to clipNorm · √ranks. Default: no clipping.",
        ),
    }),
    z.strictObject({ kind: z.literal("ef21"), ...sparse }),
    z.strictObject({
      kind: z.literal("lags"),
      minDensity: share.default(0.001).describe("Minimum density."),
      maxDensity: share
        .default(0.1)
        .describe(
          "Maximum density. The density of each tensor is chosen between minDensity and maxDensity so that its exchange is hidden behind the backward pass; a tensor whose dense exchange is hidden is sent dense.",
        ),
      errorFeedback,
      ...around,
    }),
    z.strictObject({ kind: z.literal("majority-vote"), ...around }),
    z.strictObject({
      kind: z.literal("scaled-sign"),
      perTensor: z.boolean().default(false).describe("One scale per tensor instead of per bucket."),
      errorFeedback,
      ...around,
    }),
    z.strictObject({
      kind: z.literal("one-bit"),
      blockSize: count.default(512).describe("Number of elements that share the two reconstruction values."),
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
          "Clip each tensor at this many standard deviations before quantization, as in the paper; 0: no clipping, which is unbiased.",
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
        .describe("Minimum compression factor; matrices that would shrink less are sent dense."),
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
            "Error feedback: add the unsent part of a gradient to the next gradient. Default: on if the codec declares itself biased.",
          ),
        ...around,
      })
      .describe(
        "A user codec or aggregator, returned by a function of a module: export default (context, options) => ….",
      ),
    z.strictObject({ ...ownProgram, errorFeedback: z.boolean().optional(), ...around }).describe(programRule),
  ])
  .describe("Compression of gradients before they are sent.");

const profileSteps = count.default(10).describe("Steps to time before the run, on a copy of the state.");

export const bucketsSchema = z
  .discriminatedUnion("kind", [
    z.strictObject({ kind: z.literal("per-tensor") }),
    z.strictObject({
      kind: z.literal("fixed-size"),
      bytes: count
        .default(4 * 1024 * 1024)
        .describe("Maximum gradient bytes per bucket; a larger tensor has a bucket of its own."),
    }),
    z.strictObject({
      kind: z.literal("mg-wfbp"),
      plan: z
        .enum(["exact", "greedy", "simultaneous"])
        .default("exact")
        .describe(
          "How tensors are merged into buckets. exact: the optimum under the cost model; greedy: the paper's greedy rule; simultaneous: for two concurrent collectives, with priorities: spread.",
        ),
      profileSteps,
    }),
    z.strictObject({ kind: z.literal("moe-idle"), profileSteps }),
    z.strictObject({
      kind: z.literal("tuned"),
      trials: count.default(10).describe("Number of bucket sizes to try, by Bayesian optimization."),
      stepsEach: z
        .int()
        .min(2)
        .default(10)
        .describe(
          "Steps with each size; the first step of each is not timed. The same number of warm-up steps precedes the first trial.",
        ),
      minBytes: count.default(64 * 1024).describe("Minimum bytes of a bucket."),
      maxBytes: count.default(64 * 1024 * 1024).describe("Maximum bytes of a bucket."),
    }),
  ])
  .describe("How gradients are grouped into buckets, the messages of the exchange.");

export const overlapSchema = z
  .enum(["none", "wait-free", "dear"])
  .describe(
    "When gradients are exchanged. none: after the backward pass; wait-free: during the backward pass; dear: reduce-scatter during the backward pass, all-gather during the next forward pass.",
  );

export const prioritiesSchema = z
  .enum(["none", "forward", "spread"])
  .describe(
    "Order of collectives. none: as they become ready; forward: parameters needed first in the next forward pass go first; spread: two collectives at a time.",
  );

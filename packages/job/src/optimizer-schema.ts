import { z } from "zod";
import { ownModule, ownProgram, userObject, programRule } from "./own-schema.ts";
import { count } from "./ranges.ts";

const share = z.number().gt(0).lt(1);
const weightDecay = z
  .number()
  .min(0)
  .describe(
    "Weight decay: factor of a parameter that is added to its gradient, or to its update with adamw, soap and lamb.",
  );
const beta = z.number().min(0).lt(1);
const momentum = beta.describe("Momentum: share of the previous update.");
const beta1 = beta.describe("Decay of the running mean of gradients.");
const beta2 = beta.describe("Decay of the running mean of squared gradients.");
const epsilon = z.number().gt(0).describe("Number added to a divisor to keep it away from 0.");
const adam = { beta1: beta1.default(0.9), beta2: beta2.default(0.999), epsilon: epsilon.default(1e-8) };

const afterPreconditioning = { momentum: momentum.default(0.9), weightDecay: weightDecay.default(0) };

const size = {
  damping: z.number().gt(0).default(0.03).describe("Damping, added to the curvature before it is inverted."),
  size: z
    .enum(["kl-clip", "gradient-norm", "free"])
    .default("kl-clip")
    .describe(
      "How the preconditioned gradient is scaled. kl-clip: bounded by klClip; gradient-norm: to the norm of the gradient; free: not scaled.",
    ),
  klClip: z.number().gt(0).default(0.001).describe("Maximum KL divergence of one step; for size: kl-clip."),
};

const curvature = {
  ...size,
  curvatureDecay: beta.default(0.95).describe("Decay of the running means of statistics: weight of earlier steps."),
  statisticsSamples: count
    .optional()
    .describe(
      "Samples of each rank's share of a batch to gather statistics from; with accumulate, rounded up to a multiple of its parts. Default: all.",
    ),
  ...afterPreconditioning,
};

const factorBuckets = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("per-factor") }),
  z.strictObject({
    kind: z.literal("fixed-size"),
    bytes: count
      .default(4 * 1024 * 1024)
      .describe("Bucket size in bytes of factors; a bucket is sent when it is full."),
  }),
  z.strictObject({ kind: z.literal("planned") }),
]);

/** Schema of the field `optimizer` of a job. */
export const optimizerSchema = z
  .discriminatedUnion("kind", [
    z.strictObject({ kind: z.literal("sgd"), weightDecay: weightDecay.default(0) }),
    z.strictObject({
      kind: z.enum(["momentum", "nesterov"]),
      decay: momentum.default(0.9),
      weightDecay: weightDecay.default(0),
    }),
    z.strictObject({ kind: z.literal("adam"), ...adam }),
    z.strictObject({ kind: z.literal("adamw"), ...adam, weightDecay: weightDecay.default(0.01) }),
    z.strictObject({ kind: z.enum(["eva", "eva-f"]), ...curvature }),
    z.strictObject({
      kind: z.literal("kfac"),
      ...curvature,
      positions: z
        .enum(["expand", "reduce"])
        .default("expand")
        .describe(
          "expand: each position of an image or a text counts as a sample; reduce: the positions of a sample are reduced to one row.",
        ),
      factorEvery: count.default(10).describe("Steps between two updates of factors."),
      inverseEvery: count.default(10).describe("Steps between two inversions; a multiple of factorEvery."),
      inverse: z
        .enum(["cholesky", "eigen"])
        .default("cholesky")
        .describe(
          "cholesky: inverses of both damped factors; eigen: eigendecompositions, which divide by the damped product exactly.",
        ),
      blockSize: count
        .optional()
        .describe(
          "Maximum number of rows of a diagonal block of a factor; entries outside the blocks are treated as 0. Default: all rows.",
        ),
      form: z
        .enum(["d", "mpd", "spd", "kaisa", "pad", "dp", "dp-hybrid", "auto"])
        .default("mpd")
        .describe("How ranks divide the work of K-FAC; auto: the form that is fastest according to measurements."),
      gradientWorkers: z
        .number()
        .min(0)
        .max(1)
        .default(0.5)
        .describe(
          "Share of the ranks that precondition each layer; for forms kaisa, pad, dp-hybrid and auto. 0: one rank.",
        ),
      factorBuckets: factorBuckets
        .optional()
        .describe("How factors are grouped into messages. Default: planned for forms spd and auto, otherwise 4 MiB."),
    }),
    z.strictObject({
      kind: z.literal("eva-s"),
      ...size,
      variant: z
        .enum(["product", "roots"])
        .default("product")
        .describe(
          "How curvature is built from the mean row and the mean column of a gradient. product: from their outer product; roots: from the square roots of both.",
        ),
      ...afterPreconditioning,
    }),
    z.strictObject({
      kind: z.literal("shampoo"),
      secondMomentDecay: z
        .number()
        .min(0)
        .max(1)
        .default(1)
        .describe("Decay of the second moments; 1: moments are summed."),
      blockSize: count
        .default(128)
        .describe("Maximum number of rows and columns of a block; each block is preconditioned by itself."),
      ridge: z
        .number()
        .gt(0)
        .default(1e-6)
        .describe("Regularization added to the second moments, as a share of their largest eigenvalue."),
      grafting: z.boolean().default(true).describe("Scale the update of each tensor to the norm of its gradient."),
      rootsEvery: count.default(10).describe("Steps between two computations of the roots."),
      ...afterPreconditioning,
    }),
    z.strictObject({
      kind: z.literal("soap"),
      beta1: beta1.default(0.95),
      beta2: beta2.default(0.95),
      epsilon: epsilon.default(1e-8),
      weightDecay: weightDecay.default(0.01),
      largestSide: count
        .default(1024)
        .describe("Maximum number of rows or columns for which a basis is computed; a longer side is not rotated."),
      basesEvery: count.default(10).describe("Steps between two computations of the bases."),
    }),
    z.strictObject({
      kind: z.literal("muon"),
      momentum: momentum.default(0.95),
      nesterov: z.boolean().default(true).describe("Whether to use Nesterov momentum."),
      steps: count.default(5).describe("Iterations of the orthogonalization of each matrix."),
      weightDecay: weightDecay.default(0),
      adamShare: z
        .number()
        .gt(0)
        .default(0.015)
        .describe(
          "Learning rate of Adam, which updates the embedding, the head and vectors, as a share of Muon's learning rate.",
        ),
    }),
    z.strictObject({
      kind: z.literal("lars"),
      decay: momentum.default(0.9),
      weightDecay: weightDecay.default(0),
      coefficient: z
        .number()
        .gt(0)
        .default(0.001)
        .describe("Trust coefficient: norm of the update of a tensor, as a share of the tensor's norm."),
    }),
    z.strictObject({
      kind: z.literal("lamb"),
      ...adam,
      epsilon: epsilon.default(1e-6),
      weightDecay: weightDecay.default(0.01),
    }),
    z
      .strictObject(ownModule)
      .describe(
        "A user optimizer, returned by a function of a module: export default (context, options) => ({ init, update }).",
      ),
    z.strictObject(ownProgram).describe(programRule),
  ])
  .describe("Optimizer, which turns gradients into updates.");

/** Schema of the field `learningRate` of a job. */
export const learningRateSchema = z
  .strictObject({
    peak: z.number().gt(0).describe("Learning rate after warm-up."),
    warmupSteps: z
      .int()
      .min(0)
      .default(0)
      .describe("Steps of the warm-up, in which the learning rate increases linearly to its peak."),
    decay: z
      .enum(["constant", "cosine", "step", "linear", "polynomial", "wsd", "one-cycle"])
      .default("constant")
      .describe(
        "Decay after the warm-up. cosine, linear and polynomial decrease until the end of the run; wsd decreases only in the last part; one-cycle first increases.",
      ),
    schedule: userObject(
      "A user schedule that replaces decay, returned by a function of a module: export default (context, options) => ….",
    ).optional(),
    final: z
      .number()
      .min(0)
      .default(0)
      .describe("Learning rate at the end of the run; for the decays cosine, linear, polynomial, wsd and one-cycle."),
    factor: z
      .number()
      .gt(0)
      .default(0.1)
      .describe("Factor by which each drop multiplies the learning rate; for decay: step."),
    everySteps: count.optional().describe("Steps between two drops; for decay: step."),
    power: z
      .number()
      .gt(0)
      .optional()
      .describe("Exponent of the remaining share of the run; for decay: polynomial. Default: 2."),
    decayShare: share
      .optional()
      .describe(
        "Share of the steps after the warm-up in which the learning rate decreases; for decay: wsd. Default: 0.2.",
      ),
    riseShare: share
      .optional()
      .describe("Share of the steps in which the learning rate increases; for decay: one-cycle. Default: 0.3."),
  })
  .describe("Learning-rate schedule.");

/** Schema of the field `precision` of a job. */
export const precisionSchema = z
  .discriminatedUnion("kind", [
    z.strictObject({ kind: z.literal("f32") }),
    z.strictObject({ kind: z.literal("mixed-bf16") }),
    z.strictObject({
      kind: z.literal("mixed-f16"),
      initialScale: z
        .number()
        .gt(0)
        .refine((value) => Number.isInteger(Math.log2(value)), "must be a power of two, such as 1024")
        .default(1024)
        .describe("Loss scale in the first step; a power of two."),
      growthInterval: count
        .default(2000)
        .describe("Consecutive steps without overflow after which the loss scale doubles, up to 2^24."),
    }),
  ])
  .describe(
    "Precision of matrix products. mixed-bf16: bf16 products with sums and weights in f32; mixed-f16: f16 products with sums and weights in f32, and an adaptive loss scale.",
  );

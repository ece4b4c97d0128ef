import { z } from "zod";
import type { CrossFieldFault } from "./cross-field-fault.ts";
import type { FactorBucketsJob, Job, LearningRateJob, OptimizerJob, PrecisionJob } from "./job.ts";
import { ownModule, ownProgram, ownThing, programRule } from "./own-schema.ts";
import { count } from "./ranges.ts";

const share = z.number().gt(0).lt(1);
const weightDecay = z.number().min(0);
const beta = z.number().min(0).lt(1);
const adam = { beta1: beta.default(0.9), beta2: beta.default(0.999), epsilon: z.number().gt(0).default(1e-8) };

const afterPreconditioning = { momentum: beta.default(0.9), weightDecay: weightDecay.default(0) };

const size = {
  damping: z.number().gt(0).default(0.03).describe("What is added to curvature before it is inverted."),
  size: z
    .enum(["kl-clip", "gradient-norm", "free"])
    .default("kl-clip")
    .describe("How long the preconditioned gradient may be."),
  klClip: z.number().gt(0).default(0.001).describe("Bound of the divergence of one step; for size: kl-clip."),
};

const curvature = {
  ...size,
  curvatureDecay: beta.default(0.95).describe("Share of the past in the running means of statistics."),
  statisticsSamples: count
    .optional()
    .describe(
      "Number of samples of a rank's part of a batch to gather statistics of; with accumulate rounded up to a multiple of its parts. Default: all.",
    ),
  ...afterPreconditioning,
};

const factorBuckets: z.ZodType<FactorBucketsJob> = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("per-factor") }),
  z.strictObject({
    kind: z.literal("fixed-size"),
    bytes: count.default(4 * 1024 * 1024).describe("Bytes of factors with which a bucket is full and leaves."),
  }),
  z.strictObject({ kind: z.literal("planned") }),
]);

/** The field `optimizer` of a job. */
export const optimizerSchema: z.ZodType<OptimizerJob> = z
  .discriminatedUnion("kind", [
    z.strictObject({ kind: z.literal("sgd"), weightDecay: weightDecay.default(0) }),
    z.strictObject({
      kind: z.enum(["momentum", "nesterov"]),
      decay: beta.default(0.9),
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
        .describe("Whether the positions of an image or a text count as samples, or as one row."),
      factorEvery: count.default(10).describe("Steps from one gathering of factors to the next."),
      inverseEvery: count.default(10).describe("Steps from one inversion to the next, a multiple of factorEvery."),
      inverse: z
        .enum(["cholesky", "eigen"])
        .default("cholesky")
        .describe("Inverses of both damped factors, or eigenvectors, which divide by the damped product exactly."),
      blockSize: count
        .optional()
        .describe("Most rows of a block of a factor, what is outside counts as 0; all rows by default."),
      form: z
        .enum(["d", "mpd", "spd", "kaisa", "pad", "dp", "dp-hybrid", "auto"])
        .default("mpd")
        .describe("How ranks share the work; auto takes the form that measurements predict to be fastest."),
      gradientWorkers: z
        .number()
        .min(0)
        .max(1)
        .default(0.5)
        .describe("Share of the ranks that precondition each layer; for forms kaisa, pad, dp-hybrid and auto."),
      factorBuckets: factorBuckets
        .optional()
        .describe("Which factors travel together; planned for spd and auto, else 4 MiB, by default."),
    }),
    z.strictObject({
      kind: z.literal("eva-s"),
      ...size,
      variant: z.enum(["product", "roots"]).default("product").describe("What means of rows and columns stand for."),
      ...afterPreconditioning,
    }),
    z.strictObject({
      kind: z.literal("shampoo"),
      secondMomentDecay: z.number().min(0).max(1).default(1).describe("Share of the past; 1 adds moments up."),
      blockSize: count.default(128).describe("Most rows and columns that are preconditioned together."),
      ridge: z.number().gt(0).default(1e-6).describe("Added to moments, as a share of their greatest eigenvalue."),
      grafting: z.boolean().default(true).describe("Give each tensor the norm of its gradient."),
      rootsEvery: count.default(10).describe("Steps from one derivation of roots to the next."),
      ...afterPreconditioning,
    }),
    z.strictObject({
      kind: z.literal("soap"),
      beta1: beta.default(0.95),
      beta2: beta.default(0.95),
      epsilon: z.number().gt(0).default(1e-8),
      weightDecay: weightDecay.default(0.01),
      largestSide: count.default(1024).describe("Most rows or columns that get a basis; longer sides stay."),
      basesEvery: count.default(10).describe("Steps from one derivation of bases to the next."),
    }),
    z.strictObject({
      kind: z.literal("muon"),
      momentum: beta.default(0.95),
      nesterov: z.boolean().default(true),
      steps: count.default(5).describe("Steps of the iteration that makes a matrix orthonormal."),
      weightDecay: weightDecay.default(0),
      adamShare: z
        .number()
        .gt(0)
        .default(0.015)
        .describe("Learning rate of Adam, which moves embedding, head and vectors, as a share of Muon's."),
    }),
    z.strictObject({
      kind: z.literal("lars"),
      decay: beta.default(0.9),
      weightDecay: weightDecay.default(0),
      coefficient: z.number().gt(0).default(0.001).describe("Step of a tensor as a share of its own norm."),
    }),
    z.strictObject({
      kind: z.literal("lamb"),
      ...adam,
      epsilon: z.number().gt(0).default(1e-6),
      weightDecay: weightDecay.default(0.01),
    }),
    z
      .strictObject(ownModule)
      .describe("What a function of yours returns: export default (context, options) => ({ init, update })."),
    z.strictObject(ownProgram).describe(programRule),
  ])
  .describe("How gradients become updates.");

/** The field `learningRate` of a job. */
export const learningRateSchema: z.ZodType<LearningRateJob> = z
  .strictObject({
    peak: z.number().gt(0).describe("Learning rate after warm-up."),
    warmupSteps: z.int().min(0).default(0),
    decay: z
      .enum(["constant", "cosine", "step", "linear", "polynomial", "wsd", "one-cycle"])
      .default("constant")
      .describe(
        "What follows the warm-up: cosine, linear and polynomial fall until the run ends, wsd only in its last part, one-cycle rises first.",
      ),
    schedule: ownThing(
      "In place of a decay, what a function of yours returns: export default (context, options) => ….",
    ).optional(),
    final: z.number().min(0).default(0).describe("Learning rate at the end, of all that fall to it."),
    factor: z.number().gt(0).default(0.1).describe("What a step multiplies the rate by."),
    everySteps: count.optional().describe("Steps between two drops; for decay: step."),
    power: z.number().gt(0).optional().describe("Of what is left of the run; for decay: polynomial. Default: 2."),
    decayShare: share.optional().describe("Part of the run in which it falls; for decay: wsd. Default: 0.2."),
    riseShare: share.optional().describe("Part of the run in which it rises; for decay: one-cycle. Default: 0.3."),
  })
  .describe("The learning rate over time.");

/** The field `precision` of a job. */
export const precisionSchema: z.ZodType<PrecisionJob> = z
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
        .describe("Factor of the loss in the first step."),
      growthInterval: count
        .default(2000)
        .describe("Number of consecutive steps without overflow after which the factor doubles, up to 2^24."),
    }),
  ])
  .describe(
    "What products compute in: f32; bf16 with sums and weights in f32; or f16 with these and a loss scale that adapts.",
  );

/** Whether the ranks of a job form a grid of gradient workers and receivers. */
export const hasGrid = ({ form }: Extract<OptimizerJob, { readonly kind: "kfac" }>): boolean =>
  form === "kaisa" || form === "pad" || form === "dp-hybrid" || form === "auto";

/** Rules about curvature. */
export const curvatureFaults = ({ optimizer, batch, ranks, overlap }: Job): CrossFieldFault[] => {
  const faults: CrossFieldFault[] = [];
  const fault = (field: string, rule: string): void => void faults.push({ path: ["optimizer", field], rule });
  if ((optimizer.kind === "shampoo" || optimizer.kind === "soap") && overlap === "dear")
    fault(
      "kind",
      `${optimizer.kind} derives ${optimizer.kind === "soap" ? "bases" : "roots"} in its update, which overlap: dear leaves to the next step; use wait-free`,
    );
  if (!("curvatureDecay" in optimizer)) return faults;
  const { statisticsSamples } = optimizer;
  if (statisticsSamples !== undefined && statisticsSamples > batch / ranks)
    fault(
      "statisticsSamples",
      `${statisticsSamples} samples are to be looked at, but a rank's part of a batch has ${batch / ranks}; use at most so many`,
    );
  if (optimizer.kind === "kfac" && optimizer.inverseEvery % optimizer.factorEvery !== 0)
    fault(
      "inverseEvery",
      `inverses are made anew every ${optimizer.inverseEvery} steps of factors that change every ${optimizer.factorEvery}; use a multiple of factorEvery`,
    );
  if (optimizer.kind === "kfac" && optimizer.form === "dp-hybrid" && optimizer.blockSize === undefined)
    fault(
      "form",
      "dp-hybrid shares out blocks of factors, but factors are whole; give blockSize, such as 512, or use dp",
    );
  const { form, factorBuckets: buckets } = optimizer.kind === "kfac" ? optimizer : {};
  if (buckets !== undefined && (form === "dp" || form === "dp-hybrid"))
    fault(
      "factorBuckets",
      `with form: ${form} no factors travel; leave factorBuckets out or use another form, such as mpd`,
    );
  if (buckets !== undefined && buckets.kind !== "planned" && form === "auto")
    fault(
      "factorBuckets",
      `with form: auto buckets are planned with the form that they belong to, not ${buckets.kind}; leave factorBuckets out or use another form, such as mpd`,
    );
  if (optimizer.kind === "kfac" && hasGrid(optimizer)) {
    const { gradientWorkers } = optimizer;
    const workers = Math.max(1, ranks * gradientWorkers);
    if (!Number.isInteger(workers) || ranks % workers !== 0)
      fault(
        "gradientWorkers",
        `a share ${gradientWorkers} of ${ranks} ranks is ${ranks * gradientWorkers} gradient workers, which do not divide them; use 1, 0, or another share that does`,
      );
  }
  return faults;
};

/** Rules about the learning rate over time. */
export const learningRateFaults = ({ learningRate }: Job): CrossFieldFault[] => {
  const faults: CrossFieldFault[] = [];
  const fault = (path: readonly string[], rule: string): void => void faults.push({ path, rule });
  const { decay, everySteps, peak, final, warmupSteps, schedule } = learningRate;
  if (schedule !== undefined && decay !== "constant")
    fault(
      ["learningRate", "decay"],
      `decay: ${decay} and a schedule of yours both say what follows the warm-up; give one of them`,
    );
  if (decay === "step" && everySteps === undefined)
    fault(["learningRate"], "decay: step needs everySteps, the steps between two drops; give it");
  const only = { everySteps: "step", power: "polynomial", decayShare: "wsd", riseShare: "one-cycle" } as const;
  for (const [key, kind] of Object.entries(only))
    if (decay !== kind && learningRate[key as keyof typeof only] !== undefined)
      fault(["learningRate", key], `${key} has no effect with decay: ${decay}; leave it out or use decay: ${kind}`);
  if (decay === "one-cycle" && warmupSteps > 0)
    fault(
      ["learningRate", "warmupSteps"],
      `${warmupSteps} steps of warm-up were asked for, but one-cycle rises by itself; leave warmupSteps out, and say how long it rises with riseShare`,
    );
  if (final > peak)
    fault(["learningRate", "final"], `the final rate ${final} is above the peak ${peak}; use at most the peak`);
  return faults;
};

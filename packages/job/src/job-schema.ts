import { z } from "zod";
import { dataSchema } from "./data-schema.ts";
import { bucketsSchema, compressionSchema, overlapSchema, prioritiesSchema } from "./exchange-schema.ts";
import { memorySchema } from "./memory-schema.ts";
import { meshSchema } from "./mesh-schema.ts";
import { modelSchema } from "./model-schema.ts";
import { networkSchema } from "./network-schema.ts";
import { learningRateSchema, optimizerSchema, precisionSchema } from "./optimizer-schema.ts";
import { userObject } from "./own-schema.ts";
import { freezeSchema, ratesSchema, weightDecaysSchema } from "./parameter-schema.ts";
import { count } from "./ranges.ts";

/** Schema of job files. */
export const jobSchema = z
  .strictObject({
    name: z
      .string()
      .max(100)
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, "a name is made of letters, digits, dot, dash and underscore")
      .describe("Name of the run and of its output folder."),
    seed: z.int().min(0).default(0).describe("Seed of the initial weights, the data order and dropout."),
    ranks: z
      .int()
      .min(1)
      .max(64)
      .default(1)
      .describe(
        "Total number of ranks. The batch is divided among all ranks; ranks along mesh.tensor process the same samples.",
      ),
    mesh: meshSchema.prefault({}),
    zero: z
      .literal([0, 1])
      .default(0)
      .describe(
        "ZeRO stage. 1: ranks with the same parameters shard the optimizer state and divide the work of the update.",
      ),
    backend: z
      .enum(["auto", "cpu", "webgpu"])
      .default("auto")
      .describe(
        "Compute backend: cpu (WebAssembly), webgpu, or auto, the backend that skein-train doctor expects to be faster.",
      ),
    blas: z
      .enum(["auto", "off"])
      .default("auto")
      .describe(
        "Matrix products on the CPU. auto: use the BLAS measured by skein-train blas build wherever it is faster, if that command was run; off: WebAssembly only.",
      ),
    threads: count
      .max(256)
      .optional()
      .describe("CPU threads of each rank; results are bit-identical for any number. Default: cores / ranks."),
    precision: precisionSchema.default({ kind: "f32" }),
    batch: count.describe("Samples per step, over all ranks; a multiple of ranks."),
    accumulate: count
      .optional()
      .describe(
        "Gradient accumulation: number of sequential parts of each rank's share of the batch. More parts need less memory; their mean gradient is exchanged once per step. Default: 1.",
      ),
    average: z
      .strictObject({
        decay: z
          .number()
          .min(0)
          .lt(1)
          .default(0.999)
          .describe("Decay of the average, approached gradually: min(decay, t / (9 + t)) after t updates."),
      })
      .optional()
      .describe(
        "Keep an exponential moving average (EMA) of the parameters, and use it for evaluation, export and generation. Default: no average.",
      ),
    labelSmoothing: z
      .number()
      .gt(0)
      .lt(1)
      .optional()
      .describe(
        "Label smoothing: share of the target probability that the training loss spreads over all classes. Evaluation is not smoothed. Default: the model's own value, 0 for built-in models.",
      ),
    freeze: freezeSchema,
    rates: ratesSchema,
    weightDecays: weightDecaysSchema,
    epochs: count.optional().describe("Number of passes over the training data. Give either epochs or steps."),
    steps: count.optional().describe("Number of training steps. Give either epochs or steps."),
    data: dataSchema,
    model: modelSchema,
    optimizer: optimizerSchema,
    learningRate: learningRateSchema,
    clipNorm: z
      .number()
      .gt(0)
      .optional()
      .describe("Maximum global norm of the gradient; larger gradients are scaled down. Default: no clipping."),
    memory: memorySchema.prefault({}),
    compression: compressionSchema.default({ kind: "identity" }),
    buckets: bucketsSchema.default({ kind: "fixed-size", bytes: 4 * 1024 * 1024 }),
    overlap: overlapSchema.default("wait-free"),
    priorities: prioritiesSchema.default("none"),
    transport: z
      .enum(["threads", "tcp", "tls", "mpi"])
      .default("threads")
      .describe("How ranks communicate: as threads of one process, or as processes over TCP, TLS or MPI."),
    network: networkSchema.prefault({}),
    sumOrder: z
      .enum(["rank", "any"])
      .default("rank")
      .describe(
        "Order of summation in collectives. rank: in rank order, with bit-identical results on every transport; any: allows faster algorithms.",
      ),
    evaluation: z
      .strictObject({
        batch: count
          .default(500)
          .describe(
            "Samples per evaluation batch, over all ranks; rounded up to a multiple of ranks. Padding rows are not counted.",
          ),
        everyEpochs: count
          .optional()
          .describe("Also evaluate every this many epochs. Default: evaluate only at the end."),
        everySteps: count
          .optional()
          .describe("Also evaluate every this many steps. Default: evaluate only at the end."),
        stopAfter: count
          .optional()
          .describe(
            "Early stopping: end the run after this many consecutive evaluations without improvement over the best. Default: never.",
          ),
        compareBy: z
          .strictObject({
            figure: z
              .string()
              .describe("Metric to compare: loss, accuracy (classification only), or the name of a user metric."),
            better: z.enum(["lower", "higher"]).describe("Whether lower or higher values are better."),
          })
          .optional()
          .describe(
            "Metric that stopAfter and checkpoint.best compare evaluations by. Default: { figure: loss, better: lower }.",
          ),
        samples: count
          .max(64)
          .optional()
          .describe(
            "Number of held-out samples whose model outputs are shown after each evaluation, at most 64: labels, numbers, the second half of a text, or the first numbers of any other tree. Default: no samples.",
          ),
      })
      .prefault({})
      .describe("Evaluation on held-out samples."),
    metrics: userObject(
      "User metrics, computed in each evaluation: export default (task, options) => ({ rows, metrics }).",
    ).optional(),
    callbacks: userObject(
      "User callbacks, called at the start of a run, after steps, evaluations and checkpoints, and at the end: export default (run, options) => ({ onStep }).",
    ).optional(),
    histograms: z
      .strictObject({
        everySteps: count.describe("Record histograms before the first step, and then every this many steps."),
      })
      .optional()
      .describe(
        "Record histograms of weights and gradients in histograms.jsonl of the output folder at fixed intervals. Default: only when requested on the page of skein-train watch.",
      ),
    checkpoint: z
      .strictObject({
        everySteps: count
          .optional()
          .describe("Also save every this many steps. Default: save only at the end and on interruption."),
        keep: count.default(3).describe("Maximum number of checkpoints to keep; older checkpoints are deleted."),
        best: z
          .boolean()
          .optional()
          .describe(
            "Also save after each evaluation that is better than all earlier evaluations, and keep that checkpoint in addition to the newest.",
          ),
      })
      .prefault({})
      .describe("When checkpoints are saved, and how many are kept."),
    replicas: z
      .strictObject({
        checkEverySteps: z
          .int()
          .min(0)
          .default(100)
          .describe(
            "Compare digests of all parameters between ranks every this many steps, and before each checkpoint; 0: never.",
          ),
      })
      .prefault({})
      .describe(
        "Consistency check of replicas: replicas of parameters and optimizer state must be bitwise equal on all ranks that hold them. A run with differing replicas is stopped.",
      ),
  })
  .describe("A training job of skein-train.");

/** Returns the JSON Schema of job files, for editors. */
export const jobJsonSchema = (): object => z.toJSONSchema(jobSchema, { io: "input", target: "draft-7" });

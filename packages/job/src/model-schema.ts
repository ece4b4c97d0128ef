import { resamplingFilters } from "@skein/data";
import { z } from "zod";
import { digest, ownModule, ownProgram } from "./own-schema.ts";
import { count, maxLayers, path, width } from "./ranges.ts";

/** Schema of `model.experts.placement` of a GPT. */
const placementSchema = z
  .strictObject({
    everySteps: count.describe("Steps between two placements of experts."),
    planner: z
      .enum(["heaviest-first", "swap"])
      .default("heaviest-first")
      .describe(
        "heaviest-first: equalize the loads of all ranks; swap: swap experts between ranks to shorten the exchange of tokens, according to the experts that each token chose.",
      ),
    when: z
      .enum(["always", "pays"])
      .default("always")
      .describe(
        "always: move experts whenever a better placement is found; pays: move experts only if the expected gain exceeds the cost of the move.",
      ),
    swaps: count.default(1).describe("Maximum number of swaps per layer and placement; for planner: swap."),
    loadDecay: z
      .number()
      .min(0)
      .max(1)
      .default(0.95)
      .describe("Decay of the running mean of expert loads: weight of earlier loads after each step."),
  })
  .describe("When and how experts move between ranks during training.");

const dropout = z.number().min(0).lt(1).describe("Share of activations that dropout sets to 0 in training.");

/** Schema of `model.experts` of a GPT. */
const expertsSchema = z
  .strictObject({
    count: count.max(1024).describe("Number of experts per layer; a multiple of mesh.expert."),
    topK: count.default(2).describe("Number of experts per token."),
    gate: z
      .enum(["switch", "noisy-top-k", "sigmoid", "cosine", "expert-choice", "balancing-bias", "soft", "sinkhorn"])
      .default("noisy-top-k")
      .describe("Gate, which chooses the experts of each token."),
    every: count.default(2).describe("Every this many blocks, a block has experts; 1: all blocks."),
    hidden: width
      .optional()
      .describe(
        "Hidden features of each expert. Default: 4 · width / topK (8/3 · width / topK for swiglu), which gives the flops per token of the dense model.",
      ),
    activation: z.enum(["gelu", "swiglu"]).default("gelu").describe("Activation of the hidden features of an expert."),
    shared: z.boolean().default(false).describe("Add a shared expert that processes every token."),
    capacity: z
      .union([z.number().gt(0), z.literal("all")])
      .default(1.25)
      .describe("Capacity of an expert, as a multiple of its even share of a rank's tokens; all: no token is dropped."),
    dropOrder: z
      .enum(["token", "choice", "probability", "batch-priority", "chance"])
      .default("token")
      .describe("Order in which an over-full expert accepts tokens; the remaining tokens are dropped."),
    normalisation: z
      .enum(["none", "before-dropping", "after-dropping"])
      .default("none")
      .describe(
        "Whether the weights of a token's experts are divided by their sum, and whether before or after tokens are dropped.",
      ),
    dispatch: z
      .enum(["dense", "ragged", "hierarchical", "duplicate-free", "auto"])
      .default("dense")
      .describe(
        "How tokens are sent to experts. dense: in slots of a fixed size; ragged: only the tokens themselves; hierarchical: ragged over several levels, in fewer messages; duplicate-free: hierarchical, each token at most once per group; auto: the fastest in measurements before the first step.",
      ),
    shards: z
      .enum(["none", "baseline", "split-before-gate", "split-after-gate", "auto"])
      .default("none")
      .describe(
        "Whether ranks along mesh.tensor shard each expert, and how they divide the work. baseline: each rank does everything; split-before-gate: each rank handles its own tokens from the gate on; split-after-gate: each rank handles its own slots after the gate; auto: the fastest in measurements.",
      ),
    chunks: z
      .union([count.max(64), z.literal("auto")])
      .default(1)
      .describe(
        "Number of chunks that tokens are sent in, so that experts compute on one chunk while the next is in transit; auto: from measurements.",
      ),
    backwardChunks: z
      .union([count.max(64), z.literal("auto")])
      .optional()
      .describe(
        "Number of chunks in the backward pass. A value other than chunks needs dispatch: dense; auto needs dispatch: auto, or dispatch: dense with chunks: auto. Default: same as chunks.",
      ),
    balanceLoss: z
      .number()
      .min(0)
      .default(0.01)
      .describe("Weight of the auxiliary loss that balances the load of experts."),
    importanceLoadLoss: z
      .number()
      .min(0)
      .default(0)
      .describe("Weight of the auxiliary loss that balances importance and expected load; for gate: noisy-top-k."),
    zLoss: z.number().min(0).default(0).describe("Weight of the auxiliary loss that keeps the gate's scores small."),
    placement: placementSchema.optional(),
    recordRouting: z
      .strictObject({
        everySteps: count.describe("Steps between two recordings of the choices of all tokens."),
        keep: count.default(10).describe("Number of recorded steps to keep, the most recent ones."),
      })
      .optional()
      .describe("Record which experts tokens choose, in routing.json of the output folder."),
  })
  .describe("Mixture of experts in place of the feed-forward layers.");

/** Schema of the field `model` of a job. */
export const modelSchema = z
  .discriminatedUnion("kind", [
    z.strictObject({
      kind: z.literal("mlp"),
      hidden: z.array(width).min(1).max(maxLayers).default([512, 512]).describe("Width of each hidden layer."),
    }),
    z.strictObject({
      kind: z.literal("cnn"),
      channels: z.tuple([width, width]).default([32, 64]).describe("Channels of the two convolutions."),
      hidden: width.default(128).describe("Width of the dense layer."),
      dropout: dropout.default(0),
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
      layers: count.max(maxLayers).default(4).describe("Number of blocks."),
      heads: width.default(4).describe("Number of attention heads; a divisor of width."),
      width: width.default(128).describe("Features per position; a multiple of heads."),
      dropout: dropout.default(0),
      experts: expertsSchema.optional(),
    }),
    z
      .strictObject({
        kind: z.literal("pretrained"),
        folder: path.describe("Folder in Hugging Face's layout, relative to the folder of the job file."),
        weights: z
          .enum(["folder", "none"])
          .default("folder")
          .describe("Initial weights: the folder's, or freshly initialized ones for its configuration."),
        head: z
          .literal("new")
          .optional()
          .describe(
            "new: replace the checkpoint's head with a fresh one for the classes of the data. Default: the checkpoint's head.",
          ),
        config: z
          .record(z.string(), z.unknown())
          .optional()
          .describe("Contents of the folder's config.json; filled in when a run starts, not for job files."),
        preprocessor: z
          .strictObject({
            file: z.string().optional(),
            normalise: z.strictObject({ mean: z.array(z.number()), std: z.array(z.number()) }).optional(),
            size: z.tuple([z.number(), z.number()]).optional(),
            resize: z.union([z.number(), z.tuple([z.number(), z.number()])]).optional(),
            resample: z.enum(resamplingFilters).optional(),
          })
          .optional()
          .describe(
            "Contents of the folder's preprocessor_config.json; filled in when a run starts, not for job files.",
          ),
        digest: digest
          .optional()
          .describe("SHA-256 of the folder's files; filled in when a run starts, not for job files."),
      })
      .describe("A Hugging Face checkpoint to fine-tune, or a fresh model with its configuration."),
    z
      .strictObject(ownModule)
      .describe(
        "A user model, returned by a function of a module: export default (task, options) => ({ init, apply, loss, evaluate }).",
      ),
    z.strictObject(ownProgram).describe("A model passed to train() by a program; not for job files."),
  ])
  .describe("The model.");

import { bert, type BertHead } from "@skein/models";
import { z } from "zod";
import type { Architecture, NameRow } from "../architecture.ts";
import { linear, norm } from "../name-rows.ts";
import { layerCount, readFields, size } from "../read-config.ts";
import { activation } from "./activations.ts";
import { labelFields, numLabels } from "./labels.ts";

const heads = ["BertModel", "BertForMaskedLM", "BertForPreTraining", "BertForSequenceClassification"] as const;

const fields = z.looseObject({
  ...labelFields,
  architectures: z.tuple([z.enum(heads)]),
  vocab_size: size,
  hidden_size: size,
  num_hidden_layers: layerCount,
  num_attention_heads: size,
  intermediate_size: size,
  max_position_embeddings: size,
  type_vocab_size: size.default(2),
  hidden_act: activation.prefault("gelu"),
  layer_norm_eps: z.number().positive().default(1e-12),
  pad_token_id: z.number().int().nullish().default(0),
  position_embedding_type: z.literal("absolute").nullish(),
  is_decoder: z.literal(false).default(false),
  tie_word_embeddings: z.literal(true).default(true),
});

const layer = "bert.encoder.layer.*";

const names: readonly NameRow[] = [
  ["embedding_VD", "bert.embeddings.word_embeddings.weight"],
  ["positions_TD", "bert.embeddings.position_embeddings.weight"],
  ["segments_SD", "bert.embeddings.token_type_embeddings.weight"],
  ...norm("embeddingNorm", "bert.embeddings.LayerNorm"),
  ...linear("blocks.*.attention.query", `${layer}.attention.self.query`),
  ...linear("blocks.*.attention.key", `${layer}.attention.self.key`),
  ...linear("blocks.*.attention.value", `${layer}.attention.self.value`),
  ...linear("blocks.*.attention.output", `${layer}.attention.output.dense`),
  ...norm("blocks.*.attentionNorm", `${layer}.attention.output.LayerNorm`),
  ...linear("blocks.*.up", `${layer}.intermediate.dense`),
  ...linear("blocks.*.down", `${layer}.output.dense`),
  ...norm("blocks.*.feedForwardNorm", `${layer}.output.LayerNorm`),
  ...linear("tokens.transform", "cls.predictions.transform.dense"),
  ...norm("tokens.norm", "cls.predictions.transform.LayerNorm"),
  ["tokens.bias_V", "cls.predictions.bias"],
  ...linear("pooler", "bert.pooler.dense"),
  ...linear("classifier", "classifier"),
];

/** Duplicate tensors of the token head in a file: name of the duplicate → name of the original. */
const copies = new Map([
  ["cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"],
  ["cls.predictions.decoder.bias", "cls.predictions.bias"],
]);

/**
 * Names of tensors that are not loaded: position ids in old files, and the pooler and the next-sentence head, which
 * only pretraining uses.
 */
const carried = [/^bert\.embeddings\.position_ids$/, /^bert\.pooler\./, /^cls\.seq_relationship\./];

export const bertArchitecture: Architecture = {
  classifier: "BertForSequenceClassification",
  open: (config, { recompute = "none" }) => {
    const read = readFields(fields, config);
    const [name] = read.architectures;
    const head: BertHead =
      name === "BertModel"
        ? "states"
        : name === "BertForSequenceClassification"
          ? { numClasses: numLabels(read) }
          : "tokens";
    return {
      model: bert({
        vocabulary: read.vocab_size,
        contextLength: read.max_position_embeddings,
        numSegments: read.type_vocab_size,
        width: read.hidden_size,
        numLayers: read.num_hidden_layers,
        numHeads: read.num_attention_heads,
        hidden: read.intermediate_size,
        activation: read.hidden_act,
        epsilon: read.layer_norm_eps,
        head,
        recompute,
        ...(typeof read.pad_token_id === "number" && { padding: read.pad_token_id }),
      }),
      params: names,
      prefix: "bert.",
      carried,
      renamed: [
        [/\.gamma$/, ".weight"],
        [/\.beta$/, ".bias"],
      ],
      ...(head === "tokens" && { copies }),
      ...(typeof head === "object" && {
        head: {
          initialised: /^params\.classifier\./,
          initialisedIfMissing: /^params\.pooler\./,
          dropped: /^(classifier|cls)\./,
        },
      }),
    };
  },
};

import { gpt2 } from "@skein/models";
import { z } from "zod";
import { type Architecture, type NameRow, transposed } from "../architecture.ts";
import { norm, untransposed } from "../name-rows.ts";
import { layerCount, readFields, size } from "../read-config.ts";
import { activation } from "./activations.ts";

/** Schema of the configuration fields. Fields that a file omits have transformers' defaults. */
const fields = z.looseObject({
  vocab_size: size.default(50_257),
  n_positions: size.default(1024),
  n_embd: size.default(768),
  n_layer: layerCount.default(12),
  n_head: size.default(12),
  n_inner: size.nullish(),
  activation_function: activation.prefault("gelu_new"),
  layer_norm_epsilon: z.number().positive().default(1e-5),
  tie_word_embeddings: z.boolean().default(true),
  scale_attn_weights: z.literal(true).default(true),
  scale_attn_by_inverse_layer_idx: z.literal(false).default(false),
  add_cross_attention: z.literal(false).default(false),
});

const block = "transformer.h.*";

const names: readonly NameRow[] = [
  ["embedding_VD", "transformer.wte.weight"],
  ["positions_TD", "transformer.wpe.weight"],
  ...norm("blocks.*.attentionNorm", `${block}.ln_1`),
  ...untransposed("blocks.*.attention.input", `${block}.attn.c_attn`),
  ...untransposed("blocks.*.attention.output", `${block}.attn.c_proj`),
  ...norm("blocks.*.feedForwardNorm", `${block}.ln_2`),
  ...untransposed("blocks.*.up", `${block}.mlp.c_fc`),
  ...untransposed("blocks.*.down", `${block}.mlp.c_proj`),
  ...norm("finalNorm", "transformer.ln_f"),
  ["head_DV", "lm_head.weight", transposed],
];

export const gpt2Architecture: Architecture = {
  open: (config, { recompute = "none" }) => {
    const read = readFields(fields, config);
    return {
      model: gpt2({
        vocabulary: read.vocab_size,
        contextLength: read.n_positions,
        width: read.n_embd,
        numLayers: read.n_layer,
        numHeads: read.n_head,
        activation: read.activation_function,
        epsilon: read.layer_norm_epsilon,
        tiedHead: read.tie_word_embeddings,
        recompute,
        ...(typeof read.n_inner === "number" && { hidden: read.n_inner }),
      }),
      params: names,
      prefix: "transformer.",
      // Attention masks in old files.
      carried: [/\.attn\.(masked_)?bias$/],
      ...(read.tie_word_embeddings && { copies: new Map([["lm_head.weight", "transformer.wte.weight"]]) }),
    };
  },
};

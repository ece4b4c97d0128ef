import { gpt2 } from "@skein/models";
import { z } from "zod";
import { type Architecture, type NameRow, transposed } from "../architecture.ts";
import { readFields, size } from "../read-config.ts";
import { activation } from "./activations.ts";

/** With transformers' defaults, which its files leave out now and then. */
const fields = z.looseObject({
  vocab_size: size.default(50_257),
  n_positions: size.default(1024),
  n_embd: size.default(768),
  n_layer: size.default(12),
  n_head: size.default(12),
  n_inner: size.nullish(),
  activation_function: activation.prefault("gelu_new"),
  layer_norm_epsilon: z.number().positive().default(1e-5),
  tie_word_embeddings: z.boolean().default(true),
  scale_attn_weights: z.literal(true).default(true),
  scale_attn_by_inverse_layer_idx: z.literal(false).default(false),
  add_cross_attention: z.literal(false).default(false),
});

/** Weights of GPT-2 lie as [in, out], as ours do. */
const affine = (path: string, name: string): NameRow[] => [
  [`blocks.*.${path}.weight`, `transformer.h.*.${name}.weight`],
  [`blocks.*.${path}.bias`, `transformer.h.*.${name}.bias`],
];

const norm = (path: string, name: string): NameRow[] => [
  [`${path}.gain`, `${name}.weight`],
  [`${path}.shift`, `${name}.bias`],
];

const names: readonly NameRow[] = [
  ["embedding_VD", "transformer.wte.weight"],
  ["positions_TD", "transformer.wpe.weight"],
  ...norm("blocks.*.attentionNorm", "transformer.h.*.ln_1"),
  ...affine("attention.input", "attn.c_attn"),
  ...affine("attention.output", "attn.c_proj"),
  ...norm("blocks.*.feedForwardNorm", "transformer.h.*.ln_2"),
  ...affine("up", "mlp.c_fc"),
  ...affine("down", "mlp.c_proj"),
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
      // Masks that old files hold.
      carried: [/\.attn\.(masked_)?bias$/],
      ...(read.tie_word_embeddings && { copies: new Map([["lm_head.weight", "transformer.wte.weight"]]) }),
    };
  },
};

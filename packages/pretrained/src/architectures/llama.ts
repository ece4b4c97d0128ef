import { llama, type LlamaOptions } from "@skein/models";
import type { RotaryScaling } from "@skein/tensor-core";
import { z } from "zod";
import { type Architecture, type Config, type NameRow, transposed } from "../architecture.ts";
import { linear } from "../name-rows.ts";
import { layerCount, readFields, size } from "../read-config.ts";

const positive = z.number().positive();

const scalingKinds = z.discriminatedUnion("rope_type", [
  z.looseObject({ rope_type: z.literal("default") }),
  z.looseObject({ rope_type: z.literal("linear"), factor: z.number().min(1) }),
  z.looseObject({
    rope_type: z.literal("llama3"),
    factor: z.number().min(1),
    low_freq_factor: positive,
    high_freq_factor: positive,
    original_max_position_embeddings: positive,
  }),
]);

/**
 * Schema of `rope_scaling` and `rope_parameters`. Also accepts the key `type`, which transformers 4.43 renamed to
 * `rope_type`.
 */
const scaling = z.preprocess(
  (value) =>
    typeof value === "object" && value !== null && !("rope_type" in value)
      ? { ...value, rope_type: (value as { type?: unknown }).type ?? "default" }
      : value,
  scalingKinds,
);

/** Schema of the fields common to all decoders of the Llama family, with transformers' defaults. */
const fields = z.looseObject({
  vocab_size: size,
  hidden_size: size,
  num_hidden_layers: layerCount,
  num_attention_heads: size,
  num_key_value_heads: size.nullish(),
  head_dim: size.nullish(),
  intermediate_size: size,
  hidden_act: z.literal("silu").default("silu"),
  rms_norm_eps: positive.default(1e-6),
  rope_theta: positive.nullish(),
  rope_scaling: scaling.nullish(),
  /** Rotary embedding parameters, which replace `rope_theta` and `rope_scaling` since transformers 5. */
  rope_parameters: scaling.nullish(),
  tie_word_embeddings: z.boolean().default(false),
});

const llamaFields = fields.extend({
  attention_bias: z.boolean().default(false),
  mlp_bias: z.boolean().default(false),
});

const mistralFields = fields.extend({ sliding_window: size.nullable().default(4096) });

const qwen2Fields = fields.extend({
  use_sliding_window: z.boolean().default(false),
  sliding_window: size.nullish().transform((window) => window ?? 4096),
});

/**
 * Returns the options for a sliding window. Sequences up to the window length have full causal attention. Longer
 * sequences are not supported.
 */
const limitedTo = (window: number | null): Partial<LlamaOptions> => (window === null ? {} : { contextLength: window });

const rotaryScaling = (given: z.infer<typeof scalingKinds> | null | undefined): RotaryScaling | undefined => {
  switch (given?.rope_type) {
    case "linear":
      return { type: "linear", factor: given.factor };
    case "llama3":
      return {
        type: "llama3",
        factor: given.factor,
        lowFrequencyFactor: given.low_freq_factor,
        highFrequencyFactor: given.high_freq_factor,
        originalPositions: given.original_max_position_embeddings,
      };
    default:
      return undefined;
  }
};

const optionsOf = (read: z.infer<typeof fields>): LlamaOptions => {
  const rope = read.rope_parameters ?? read.rope_scaling;
  const scaledRotary = rotaryScaling(rope);
  const base = read.rope_theta ?? z.looseObject({ rope_theta: positive.optional() }).parse(rope ?? {}).rope_theta;
  return {
    vocabulary: read.vocab_size,
    width: read.hidden_size,
    numLayers: read.num_hidden_layers,
    numHeads: read.num_attention_heads,
    hidden: read.intermediate_size,
    epsilon: read.rms_norm_eps,
    tiedHead: read.tie_word_embeddings,
    ...(typeof read.num_key_value_heads === "number" && { numKeyHeads: read.num_key_value_heads }),
    ...(typeof read.head_dim === "number" && { headWidth: read.head_dim }),
    ...(base !== undefined && { rotaryBase: base }),
    ...(scaledRotary !== undefined && { rotaryScaling: scaledRotary }),
  };
};

const layer = "model.layers.*";

const names: readonly NameRow[] = [
  ["embedding_VD", "model.embed_tokens.weight"],
  ["blocks.*.attentionNorm.gain", `${layer}.input_layernorm.weight`],
  ...linear("blocks.*.attention.query", `${layer}.self_attn.q_proj`),
  ...linear("blocks.*.attention.key", `${layer}.self_attn.k_proj`),
  ...linear("blocks.*.attention.value", `${layer}.self_attn.v_proj`),
  ...linear("blocks.*.attention.output", `${layer}.self_attn.o_proj`),
  ["blocks.*.feedForwardNorm.gain", `${layer}.post_attention_layernorm.weight`],
  ...linear("blocks.*.gate", `${layer}.mlp.gate_proj`),
  ...linear("blocks.*.up", `${layer}.mlp.up_proj`),
  ...linear("blocks.*.down", `${layer}.mlp.down_proj`),
  ["finalNorm.gain", "model.norm.weight"],
  ["head_DV", "lm_head.weight", transposed],
];

/** Matches rotary frequencies in old files. The frequencies are computed from the configuration instead. */
const carried = [/\.rotary_emb\.inv_freq$/];

const tiedHead = new Map([["lm_head.weight", "model.embed_tokens.weight"]]);

const decoder = <Schema extends typeof fields>(
  schema: Schema,
  own: (read: z.infer<Schema>) => Partial<LlamaOptions>,
): Architecture => ({
  open: (config: Config, { recompute = "none" }) => {
    const read = readFields(schema, config);
    return {
      model: llama({ ...optionsOf(read), ...own(read), recompute }),
      params: names,
      carried,
      ...(read.tie_word_embeddings && { copies: tiedHead }),
    };
  },
});

export const llamaArchitecture: Architecture = decoder(llamaFields, (read) => ({
  attentionBias: read.attention_bias ? "all" : "none",
  feedForwardBias: read.mlp_bias,
}));

export const mistralArchitecture: Architecture = decoder(mistralFields, (read) => limitedTo(read.sliding_window));

export const qwen2Architecture: Architecture = decoder(qwen2Fields, (read) => ({
  attentionBias: "inputs",
  ...(read.use_sliding_window && limitedTo(read.sliding_window)),
}));

import { vit } from "@skein/models";
import { z } from "zod";
import type { Architecture, NameRow } from "../architecture.ts";
import { convolution, linear, norm } from "../name-rows.ts";
import { layerCount, readFields, size } from "../read-config.ts";
import { activation } from "./activations.ts";
import { labelFields, numLabels } from "./labels.ts";

const fields = z.looseObject({
  ...labelFields,
  architectures: z.tuple([z.literal("ViTForImageClassification")]),
  image_size: z.union([size, z.tuple([size, size])]).default(224),
  patch_size: size.default(16),
  num_channels: size.default(3),
  hidden_size: size.default(768),
  num_hidden_layers: layerCount.default(12),
  num_attention_heads: size.default(12),
  intermediate_size: size.default(3072),
  qkv_bias: z.boolean().default(true),
  hidden_act: activation.prefault("gelu"),
  layer_norm_eps: z.number().positive().default(1e-12),
});

const layer = "vit.encoder.layer.*";

const names: readonly NameRow[] = [
  ["classToken", "vit.embeddings.cls_token"],
  ["positions", "vit.embeddings.position_embeddings"],
  ...convolution("patches", "vit.embeddings.patch_embeddings.projection"),
  ...norm("blocks.*.attentionNorm", `${layer}.layernorm_before`),
  ...linear("blocks.*.attention.query", `${layer}.attention.attention.query`),
  ...linear("blocks.*.attention.key", `${layer}.attention.attention.key`),
  ...linear("blocks.*.attention.value", `${layer}.attention.attention.value`),
  ...linear("blocks.*.attention.output", `${layer}.attention.output.dense`),
  ...norm("blocks.*.feedForwardNorm", `${layer}.layernorm_after`),
  ...linear("blocks.*.up", `${layer}.intermediate.dense`),
  ...linear("blocks.*.down", `${layer}.output.dense`),
  ...norm("finalNorm", "vit.layernorm"),
  ...linear("classifier", "classifier"),
];

export const vitArchitecture: Architecture = {
  classifier: "ViTForImageClassification",
  open: (config, { recompute = "none" }) => {
    const read = readFields(fields, config);
    const { image_size: given } = read;
    return {
      model: vit({
        imageSize: typeof given === "number" ? [given, given] : given,
        patchSize: read.patch_size,
        inputChannels: read.num_channels,
        width: read.hidden_size,
        numLayers: read.num_hidden_layers,
        numHeads: read.num_attention_heads,
        hidden: read.intermediate_size,
        numClasses: numLabels(read),
        inputBias: read.qkv_bias,
        activation: read.hidden_act,
        epsilon: read.layer_norm_eps,
        recompute,
      }),
      params: names,
      prefix: "vit.",
      head: { initialised: /^params\.classifier\./, dropped: /^classifier\./ },
      // Names of tensors that are not loaded: mask token of pretraining with masked patches, and pooler of models
      // without a head.
      carried: [/^vit\.embeddings\.mask_token$/, /^vit\.pooler\./],
    };
  },
};

import { resnet } from "@skein/models";
import { z } from "zod";
import type { Architecture, NameRow } from "../architecture.ts";
import { convolution, linear, norm } from "../name-rows.ts";
import { layerCount, readFields, size } from "../read-config.ts";
import { labelFields, numLabels } from "./labels.ts";

const fields = z.looseObject({
  ...labelFields,
  architectures: z.tuple([z.literal("ResNetForImageClassification")]),
  num_channels: size.default(3),
  embedding_size: size.default(64),
  hidden_sizes: z.array(size).min(1).default([256, 512, 1024, 2048]),
  depths: z.array(layerCount).default([3, 4, 6, 3]),
  layer_type: z.enum(["basic", "bottleneck"]).default("bottleneck"),
  hidden_act: z.literal("relu").default("relu"),
  downsample_in_first_stage: z.boolean().default(false),
  downsample_in_bottleneck: z.literal(false).default(false),
});

const block = "resnet.encoder.stages.*.layers.*";

/** Path in the model, and name in files, of each convolution that is followed by a normalization. */
const convolutions: readonly (readonly [path: string, name: string])[] = [
  ["stem", "resnet.embedder.embedder"],
  ["stages.*.*.conv1", `${block}.layer.0`],
  ["stages.*.*.conv2", `${block}.layer.1`],
  ["stages.*.*.conv3", `${block}.layer.2`],
  ["stages.*.*.shortcut", `${block}.shortcut`],
];

const params: readonly NameRow[] = [
  ...convolutions.flatMap(([path, name]) => [
    ...convolution(path, `${name}.convolution`),
    ...norm(`${path}.norm`, `${name}.normalization`),
  ]),
  ...linear("head", "classifier.1"),
];

const state: readonly NameRow[] = convolutions.flatMap(([path, name]): NameRow[] => [
  [`${path}.norm.mean`, `${name}.normalization.running_mean`],
  [`${path}.norm.variance`, `${name}.normalization.running_var`],
]);

export const resnetArchitecture: Architecture = {
  classifier: "ResNetForImageClassification",
  open: (config, { recompute = "none" }) => {
    const read = readFields(fields, config);
    return {
      model: resnet({
        numClasses: numLabels(read),
        inputChannels: read.num_channels,
        stem: "large",
        stemChannels: read.embedding_size,
        block: read.layer_type,
        channels: read.hidden_sizes,
        depths: read.depths,
        strideInFirstStage: read.downsample_in_first_stage,
        recompute,
      }),
      params,
      state,
      prefix: "resnet.",
      head: { initialised: /^params\.head\./, dropped: /^classifier\./ },
      // Number of batches in the running statistics. Not needed, because the statistics are moving averages.
      carried: [/\.num_batches_tracked$/],
    };
  },
};

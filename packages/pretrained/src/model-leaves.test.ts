import { elementCount } from "@skein/tensor-core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Config } from "./architecture.ts";
import { reorderedShape } from "./dimension-order.ts";
import { modelLeaves } from "./model-leaves.ts";
import { openConfig } from "./open-config.ts";

const few = fc.integer({ min: 1, max: 3 });
const decoder = {
  vocab_size: few,
  num_hidden_layers: few,
  intermediate_size: few,
  tie_word_embeddings: fc.boolean(),
};
const heads = fc.tuple(few, few, few).map(([groups, shared, pairs]) => ({
  num_key_value_heads: groups,
  num_attention_heads: groups * shared,
  head_dim: 2 * pairs,
}));
const llama = fc.tuple(
  heads,
  fc.record({
    ...decoder,
    model_type: fc.constant("llama"),
    hidden_size: few,
    attention_bias: fc.boolean(),
    mlp_bias: fc.boolean(),
  }),
);
const encoder = {
  num_hidden_layers: few,
  intermediate_size: few,
  num_attention_heads: fc.constant(2),
  hidden_size: fc.constantFrom(2, 4),
  id2label: fc.constant({ 0: "a", 1: "b", 2: "c" }),
};
const bert = fc.record({
  ...encoder,
  model_type: fc.constant("bert"),
  architectures: fc.constantFrom(["BertModel"], ["BertForMaskedLM"], ["BertForSequenceClassification"]),
  vocab_size: few,
  max_position_embeddings: few,
});
const vit = fc.record({
  ...encoder,
  model_type: fc.constant("vit"),
  architectures: fc.constant(["ViTForImageClassification"]),
  image_size: fc.tuple(fc.constantFrom(2, 3), fc.constantFrom(2, 4)),
  patch_size: fc.constantFrom(1, 2),
  qkv_bias: fc.boolean(),
});
const resnet = fc.array(fc.tuple(few, few), { minLength: 1, maxLength: 3 }).chain((stages) =>
  fc.record({
    model_type: fc.constant("resnet"),
    architectures: fc.constant(["ResNetForImageClassification"]),
    hidden_sizes: fc.constant(stages.map(([width]) => 4 * width)),
    depths: fc.constant(stages.map(([, depth]) => depth)),
    layer_type: fc.constantFrom("basic", "bottleneck"),
    embedding_size: fc.constantFrom(4, 8),
    downsample_in_first_stage: fc.boolean(),
  }),
);
const gpt2 = fc.record({
  model_type: fc.constant("gpt2"),
  vocab_size: few,
  n_positions: few,
  n_embd: fc.constantFrom(2, 4),
  n_head: fc.constantFrom(1, 2),
  n_layer: few,
  n_inner: fc.option(few),
  tie_word_embeddings: fc.boolean(),
});

describe.each<[string, fc.Arbitrary<Config>]>([
  ["llama", llama.map(([sizes, rest]) => ({ ...sizes, ...rest }))],
  ["bert", bert],
  ["vit", vit],
  ["resnet", resnet],
  ["gpt2", gpt2],
])("%s with any configuration", (_, configs) => {
  test("has a unique name in files for each parameter and state array", () => {
    fc.assert(
      fc.property(configs, (config) => {
        const { leaves } = modelLeaves(openConfig(config));
        expect(new Set(leaves.map(({ name }) => name)).size).toBe(leaves.length);
        for (const { name, shape, nameShape, order } of leaves) {
          expect(name).not.toContain("*");
          expect(elementCount(nameShape)).toBe(elementCount(shape));
          if (order !== undefined) expect(reorderedShape(nameShape, order)).toEqual(shape);
        }
      }),
      { numRuns: 30 },
    );
  });
});

import { NdArray, relu } from "@skein/tensor-core";
import { normalArray, uniformArray } from "@skein/testing";
import { bert, cnn, gpt, gpt2, type GptOptions, llama, mlp, type Model, resnet, resnet18, vit } from "../src/index.ts";
import { ownModel } from "./own-model.ts";

export interface HostBatch {
  readonly inputs: NdArray;
  readonly labels: NdArray;
  readonly mask?: NdArray;
}

export interface ModelRow {
  readonly name: string;
  readonly model: Model;
  readonly batch: HostBatch;
  readonly numClasses: number;
  /** Expected number of parameters, computed with a closed formula. */
  readonly parameters: number;
}

const tinyGpt = (options: Partial<GptOptions> = {}): Model =>
  gpt({ vocabulary: 7, contextLength: 6, width: 8, numLayers: 2, numHeads: 2, ...options });
const tokens = { inputs: uniformArray([2, 5], 0, 7, 3, "i32"), labels: uniformArray([2, 5], 0, 7, 4, "i32") };
const attentionSize = 4 * 8 * 8;
// embeddings of tokens, positions and segments, with their layer norm; two blocks
const encoderSize = (7 + 6 + 2) * 8 + 2 * 8 + 2 * (attentionSize + 2 * 8 * 10 + 9 * 8 + 10);

// Models to test. Each model of this package and each of its variants needs one row.
export const modelRows: readonly ModelRow[] = [
  {
    name: "mlp",
    model: mlp({ sizes: [6, 5, 4, 3] }),
    batch: { inputs: normalArray([4, 2, 3], 1), labels: NdArray.from([0, 1, 2, 1], [4], "i32") },
    numClasses: 3,
    parameters: 7 * 5 + 6 * 4 + 5 * 3,
  },
  {
    name: "cnn",
    model: cnn({ imageSize: [8, 9], inputChannels: 2, channels: [3, 4], hidden: 5, numClasses: 3 }),
    batch: { inputs: normalArray([3, 8, 9, 2], 1), labels: NdArray.from([2, 0, 1], [3], "i32") },
    numClasses: 3,
    parameters: (9 * 2 + 1) * 3 + (9 * 3 + 1) * 4 + (2 * 2 * 4 + 1) * 5 + 6 * 3,
  },
  {
    name: "a user's model made of layers",
    model: ownModel(3),
    batch: { inputs: normalArray([4, 4, 4, 2], 1), labels: NdArray.from([2, 0, 1, 2], [4], "i32") },
    numClasses: 3,
    parameters: (9 * 2 + 1) * 4 + 2 * 4 + (2 * 2 * 4 + 1) * 8 + 2 * 8 + 9 * 3,
  },
  {
    name: "resnet18",
    model: resnet18({ numClasses: 4, inputChannels: 2, channels: [2, 2, 3, 4] }),
    batch: { inputs: normalArray([4, 9, 8, 2], 1), labels: NdArray.from([3, 0, 1, 2], [4], "i32") },
    numClasses: 4,
    parameters:
      // stem; per stage: convolutions, 1×1 shortcuts, and two values per normalisation and channel; head
      9 * 2 * 2 +
      4 +
      4 * (9 * 2 * 2 + 4) +
      (9 * 2 * 2 + 4 + 3 * (9 * 2 * 2 + 4) + 2 * 2 + 4) +
      (9 * 2 * 3 + 6 + 3 * (9 * 3 * 3 + 6) + 2 * 3 + 6) +
      (9 * 3 * 4 + 8 + 3 * (9 * 4 * 4 + 8) + 3 * 4 + 8) +
      5 * 4,
  },
  {
    name: "gpt",
    model: tinyGpt(),
    batch: tokens,
    numClasses: 7,
    parameters: 7 * 8 + 2 * (attentionSize + 2 * 8 * 32 + 16) + 8,
  },
  {
    name: "gpt with learned positions, layer norm, SwiGLU and an untied head",
    model: tinyGpt({ positions: "learned", norm: "layer", activation: "swiglu", tiedHead: false }),
    batch: tokens,
    numClasses: 7,
    parameters: 7 * 8 + 6 * 8 + 2 * (attentionSize + 3 * 8 * 24 + 32) + 16 + 8 * 7,
  },
  {
    name: "llama with grouped heads of a separate width, scaled positions and biases",
    model: llama({
      vocabulary: 7,
      width: 6,
      numLayers: 2,
      numHeads: 4,
      numKeyHeads: 2,
      headWidth: 4,
      hidden: 5,
      rotaryBase: 100,
      rotaryScaling: { type: "linear", factor: 2 },
      attentionBias: "all",
      feedForwardBias: true,
    }),
    batch: tokens,
    numClasses: 7,
    // embedding and head; query and output, key and value, feed-forward layer, two norms; last norm
    parameters: 2 * 7 * 6 + 2 * (2 * 6 * 16 + 16 + 6 + 2 * (6 * 8 + 8) + 3 * 6 * 5 + 2 * 5 + 6 + 2 * 6) + 6,
  },
  {
    name: "llama with a tied head and biases of queries, keys and values",
    model: llama({
      vocabulary: 7,
      width: 8,
      numLayers: 1,
      numHeads: 2,
      hidden: 6,
      attentionBias: "inputs",
      tiedHead: true,
      recompute: "blocks",
    }),
    batch: tokens,
    numClasses: 7,
    parameters: 7 * 8 + (attentionSize + 3 * 8 + 3 * 8 * 6 + 16) + 8,
  },
  {
    name: "gpt2",
    model: gpt2({ vocabulary: 7, contextLength: 6, width: 8, numLayers: 2, numHeads: 2, hidden: 10 }),
    batch: tokens,
    numClasses: 7,
    parameters: 7 * 8 + 6 * 8 + 2 * (attentionSize + 2 * 8 * 10 + 9 * 8 + 10) + 2 * 8,
  },
  {
    name: "gpt2 with an untied head and ReLU",
    model: gpt2({
      vocabulary: 7,
      contextLength: 5,
      width: 8,
      numLayers: 1,
      numHeads: 4,
      hidden: 6,
      activation: relu,
      tiedHead: false,
      recompute: "blocks",
    }),
    batch: tokens,
    numClasses: 7,
    parameters: 2 * 7 * 8 + 5 * 8 + (attentionSize + 2 * 8 * 6 + 9 * 8 + 6) + 2 * 8,
  },
  {
    name: "bert for tokens",
    model: bert({ vocabulary: 7, contextLength: 6, width: 8, numLayers: 2, numHeads: 2, hidden: 10, head: "tokens" }),
    batch: tokens,
    numClasses: 7,
    parameters: encoderSize + (8 * 8 + 8 + 2 * 8 + 7),
  },
  {
    name: "bert for classes, with two segments and padded rows",
    model: bert({
      vocabulary: 7,
      contextLength: 6,
      width: 8,
      numLayers: 2,
      numHeads: 2,
      hidden: 10,
      head: { numClasses: 3 },
      padding: 0,
    }),
    batch: {
      inputs: NdArray.from(
        [
          [
            [1, 2, 3, 4, 0],
            [0, 0, 1, 1, 0],
          ],
          [
            [5, 0, 6, 0, 0],
            [0, 1, 1, 0, 0],
          ],
          [
            [6, 1, 2, 2, 5],
            [0, 0, 0, 0, 1],
          ],
        ],
        [3, 2, 5],
        "i32",
      ),
      labels: NdArray.from([2, 0, 1], [3], "i32"),
    },
    numClasses: 3,
    parameters: encoderSize + (8 * 8 + 8 + 3 * 9),
  },
  {
    name: "vit for images that are not square",
    model: vit({
      imageSize: [4, 7],
      patchSize: 2,
      inputChannels: 2,
      width: 8,
      numLayers: 2,
      numHeads: 2,
      hidden: 10,
      numClasses: 3,
      recompute: "blocks",
    }),
    batch: { inputs: normalArray([4, 4, 7, 2], 1), labels: NdArray.from([2, 0, 1, 2], [4], "i32") },
    numClasses: 3,
    // patches, class token, positions of 2 × 3 patches and the class token; blocks; last norm and classifier
    parameters: 2 * 2 * 2 * 8 + 8 + 8 + 7 * 8 + 2 * (attentionSize + 2 * 8 * 10 + 9 * 8 + 10) + 2 * 8 + 3 * 9,
  },
  {
    name: "resnet with bottleneck blocks for large images",
    model: resnet({
      numClasses: 3,
      inputChannels: 2,
      block: "bottleneck",
      stemChannels: 3,
      channels: [8, 8],
      depths: [1, 2],
      recompute: "blocks",
    }),
    batch: { inputs: normalArray([4, 15, 17, 2], 1), labels: NdArray.from([2, 0, 1, 2], [4], "i32") },
    numClasses: 3,
    parameters:
      // stem; per block two 1×1 convolutions and one 3×3 convolution with the parameters of their norms, and a shortcut
      // in the first block of a stage
      7 * 7 * 2 * 3 +
      6 +
      (3 * 2 + 4 + 9 * 2 * 2 + 4 + 2 * 8 + 16 + (3 * 8 + 16)) +
      (8 * 2 + 4 + 9 * 2 * 2 + 4 + 2 * 8 + 16 + (8 * 8 + 16)) +
      (8 * 2 + 4 + 9 * 2 * 2 + 4 + 2 * 8 + 16) +
      3 * 9,
  },
];

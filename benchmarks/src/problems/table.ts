import type { GptSizes, Problem, ProblemTensor } from "./problem.ts";

const tensor = (name: string, shape: readonly number[], dtype: "f32" | "i32" = "f32"): ProblemTensor => ({
  name,
  dtype,
  shape,
});

const batchSize = 64;

/** Returns the problem of multiplying two square matrices. */
const gemm = (size: number, precision?: "f16"): Problem => ({
  name: precision === undefined ? `gemm-${size}` : `gemm-${size}-${precision}`,
  kind: "matmul",
  learningRate: 0,
  ...(precision && { precision }),
  tensors: [tensor("a", [size, size]), tensor("b", [size, size])],
});

/** MLP 784-512-512-10 with ReLU, mean cross-entropy, plain SGD. */
const mlpStep: Problem = {
  name: "mlp-step",
  kind: "training-step",
  learningRate: 0.01,
  tensors: [
    tensor("images", [batchSize, 784]),
    tensor("labels", [batchSize], "i32"),
    tensor("weight1", [784, 512]),
    tensor("bias1", [512]),
    tensor("weight2", [512, 512]),
    tensor("bias2", [512]),
    tensor("weight3", [512, 10]),
    tensor("bias3", [10]),
  ],
};

/**
 * conv 32 – pool – conv 64 – pool – dense 128 – dense 10 on 28×28×1 images: 3×3 convolutions with "same" padding, ReLU
 * after each layer except the last, 2×2 max pooling. Images are NHWC, convolution weights HWIO; implementations with
 * other layouts permute on load.
 */
const cnnStep: Problem = {
  name: "cnn-step",
  kind: "training-step",
  learningRate: 0.001,
  tensors: [
    tensor("images", [batchSize, 28, 28, 1]),
    tensor("labels", [batchSize], "i32"),
    tensor("weight1", [3, 3, 1, 32]),
    tensor("bias1", [32]),
    tensor("weight2", [3, 3, 32, 64]),
    tensor("bias2", [64]),
    tensor("weight3", [7 * 7 * 64, 128]),
    tensor("bias3", [128]),
    tensor("weight4", [128, 10]),
    tensor("bias4", [10]),
  ],
};

const gptBlock = (layer: number, width: number): ProblemTensor[] => {
  const matrix = (name: string, rows: number = width, columns: number = width): ProblemTensor =>
    tensor(`weight${layer}${name}`, [rows, columns]);
  return [
    tensor(`gain${layer}Attention`, [width]),
    matrix("Query"),
    matrix("Key"),
    matrix("Value"),
    matrix("Output"),
    tensor(`gain${layer}FeedForward`, [width]),
    matrix("Up", width, 4 * width),
    matrix("Down", 4 * width, width),
  ];
};

/**
 * Returns a training step of a GPT with learned positions, layer normalization with a gain before each branch, causal
 * attention, GELU by tanh, and an output head tied to the embedding; mean cross-entropy, plain SGD.
 */
const gptStep = (name: string, gpt: GptSizes, precision?: "mixed-f16"): Problem => ({
  name,
  kind: "training-step",
  learningRate: 0.01,
  ...(precision && { precision }),
  gpt,
  tensors: [
    tensor("tokens", [gpt.batch, gpt.positions], "i32"),
    tensor("labels", [gpt.batch, gpt.positions], "i32"),
    tensor("weightEmbedding", [gpt.vocabulary, gpt.width]),
    tensor("weightPositions", [gpt.positions, gpt.width]),
    ...Array.from({ length: gpt.layers }, (_, layer) => gptBlock(layer, gpt.width)).flat(),
    tensor("gainFinal", [gpt.width]),
  ],
});

const small: GptSizes = { batch: 8, positions: 64, vocabulary: 256, width: 128, layers: 4, heads: 4 };

/** GPT-2 124M without biases; the vocabulary is padded to a multiple of 64. */
const gpt2: GptSizes = { batch: 4, positions: 1024, vocabulary: 50_304, width: 768, layers: 12, heads: 12 };

const all: readonly Problem[] = [
  ...[256, 512, 1024, 2048, 4096].map((size) => gemm(size)),
  gemm(4096, "f16"),
  mlpStep,
  cnnStep,
  gptStep("gpt-step", small),
  gptStep("gpt2-124m", gpt2),
  gptStep("gpt2-124m-mixed", gpt2, "mixed-f16"),
];

/** All problems by name. */
export const problems: Readonly<Record<string, Problem>> = Object.fromEntries(
  all.map((problem) => [problem.name, problem]),
);

/** Problems for every implementation that computes on the CPU. */
export const coreProblems: readonly string[] = ["gemm-512", "mlp-step", "cnn-step"];

/** Problems on the CPU with and without a BLAS, compared with PyTorch. */
export const blasProblems: readonly string[] = [...coreProblems, "gpt-step"];

/** Problems on WebGPU in Chromium, for every library that computes there. */
export const browserProblems: readonly string[] = [
  "gemm-256",
  "gemm-512",
  "gemm-1024",
  "gemm-2048",
  "mlp-step",
  "cnn-step",
  "gpt-step",
];

/** Problems on a real GPU, compared with PyTorch. */
export const gpuProblems: readonly string[] = ["gemm-4096", "gemm-4096-f16", "gpt2-124m", "gpt2-124m-mixed"];

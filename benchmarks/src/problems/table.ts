import type { Problem, ProblemTensor } from "./problem.ts";

const tensor = (name: string, shape: readonly number[], dtype: "f32" | "i32" = "f32"): ProblemTensor => ({ name, dtype, shape });

const batchSize = 64;

/** The product of two square matrices. */
const gemm512: Problem = {
  name: "gemm-512",
  kind: "matmul",
  learningRate: 0,
  tensors: [tensor("a", [512, 512]), tensor("b", [512, 512])],
};

/** 784-512-512-10 with ReLU, mean cross-entropy, plain SGD. */
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
 * conv 32 – pool – conv 64 – pool – dense 128 – dense 10 on 28×28×1 images: 3×3 convolutions with "same" padding, ReLU after
 * each layer but the last, 2×2 max pooling. Images are NHWC, convolution weights HWIO; contestants with other layouts permute on load.
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

export const problems: Readonly<Record<string, Problem>> = { "gemm-512": gemm512, "mlp-step": mlpStep, "cnn-step": cnnStep };

// One line per family; `src/ops/` binds these exports.
export * from "./attention";
export * from "./batch-norm";
export * from "./collective";
export * from "./convolution";
export * from "./fill";
export * from "./gemm";
export * from "./indexing";
export * from "./movement";
export * from "./normalisation";
export * from "./pooling";
export * from "./rotary";
export * from "./softmax";

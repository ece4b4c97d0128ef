// One line per family; `src/ops/` binds these exports.
export * from "./attention";
export * from "./batch-norm";
export * from "./collective";
export * from "./convolution";
export * from "./fill";
export { fused, setWords } from "./fused";
export * from "./gemm";
export * from "./indexing";
export * from "./movement";
export * from "./normalisation";
export * from "./pooling";
export { foldIn, randomBits } from "./random";
export { extremeU8, maxF32, maxI32, maxU32, minF32, minI32, minU32, sumI32 } from "./reduce";
export * from "./rotary";
export { argExtreme, cumsumF32, cumsumI32 } from "./scan";
export * from "./softmax";
export { sumF32 } from "./sum";
export { topK, topKScratchBytes } from "./top-k";

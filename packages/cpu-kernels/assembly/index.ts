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
export { argExtreme, cumsumF32, cumsumI32 } from "./scan";
export { extremeU8, maxF32, maxI32, maxU32, minF32, minI32, minU32, sumI32 } from "./reduce";
export { foldIn, randomBits } from "./random";
export { fused, setWords } from "./fused";
export { sumF32 } from "./sum";
export { topK } from "./top-k";

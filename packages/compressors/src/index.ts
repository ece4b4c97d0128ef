export { type BucketPlan, bucketPerTensor, bucketsOfSize, checkBucketPlan, readyOrder } from "./bucket-plan.ts";
export type { Compressor, EncodeContext, Encoded } from "./compressor.ts";
export { type ErrorFeedbackState, withErrorFeedback } from "./error-feedback.ts";
export { type BucketOptions, denseBytes, exchange, exchangeBytes, type ExchangeOptions, initExchange, payloadBytes } from "./exchange.ts";
export { type DensePayload, identityCompressor } from "./identity.ts";
export { type SparsePayload, topKCompressor, type TopKCompressorOptions } from "./top-k.ts";

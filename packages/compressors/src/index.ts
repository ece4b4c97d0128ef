export type { AggregateContext, EncodeContext } from "./context.ts";
export type { Aggregated, AggregationHalves, Aggregator, StartedAggregation, SelectionScope } from "./aggregator.ts";
export { type Bucket, bucketOf, type BucketTensor, lengthOf } from "./bucket.ts";
export { bucketPerTensor, bucketsOfSize, readyOrder, specsByPath } from "./bucket-plan.ts";
export { type Codec, type Compressor, defineCompressor, type Encoded } from "./compressor.ts";
export { type ErrorFeedbackState, withErrorFeedback } from "./error-feedback.ts";
export {
  beginExchange,
  type BucketOptions,
  bucketsOf,
  denseBytes,
  exchange,
  exchangeBytes,
  type ExchangeOptions,
  finishExchange,
  initExchange,
} from "./exchange.ts";
export { type DensePayload, identityCompressor, type IdentityOptions } from "./identity.ts";
export { type SparsePayload, topKCompressor, type TopKCompressorOptions } from "./top-k.ts";
export { acpSgdCycle, type AcpSgdState } from "./acp-sgd.ts";
export { agoqAggregator, type AgoqOptions } from "./agoq.ts";
export { chainCompressors, type ChainPayload, type ChainState } from "./chain.ts";
export { dgcAggregator, type DgcAggregatorOptions } from "./dgc.ts";
export { type Ef21State, withEf21 } from "./ef21.ts";
export { eightBitCompressor, type EightBitOptions, type EightBitPayload } from "./eight-bit.ts";
export { fusedMean } from "./fused-mean.ts";
export { gaussianKCompressor, type GaussianKCompressorOptions } from "./gaussian-k.ts";
export { gTopKAggregator, type GTopKOptions } from "./g-top-k.ts";
export { hierarchicalTopKAggregator, type HierarchicalTopKOptions } from "./hierarchical-top-k.ts";
export type { LowRankOptions } from "./low-rank.ts";
export { majorityVoteAggregator } from "./majority-vote.ts";
export { type WithMomentumOptions, type WithMomentumState, withMomentum } from "./momentum.ts";
export {
  type MomentumCorrectionOptions,
  type MomentumCorrectionState,
  withMomentumCorrection,
} from "./momentum-correction.ts";
export { msTopKCompressor, type MsTopKCompressorOptions } from "./ms-top-k.ts";
export { okTopKAggregator, type OkTopKOptions } from "./ok-top-k.ts";
export { oneBitCompressor, type OneBitOptions, type OneBitPayload } from "./one-bit.ts";
export { hasAtLeast, isMatrix, partitionAggregator, type PartitionRule, perPath } from "./partition.ts";
export { aggregatorForStep, denseUntil, densityPhases, definePhases, type AggregatorPhase } from "./phases.ts";
export { powerSgdAggregator, type PowerSgdState } from "./power-sgd.ts";
export { qsgdCompressor, type QsgdOptions, type QsgdPayload } from "./qsgd.ts";
export { randomKCompressor, type RandomKCompressorOptions, type RandomKPayload } from "./random-k.ts";
export { scaledSignCompressor, scaledSignPerTensorAggregator, type SignPayload } from "./scaled-sign.ts";
export { ternGradAggregator, type TernGradOptions } from "./tern-grad.ts";
export { thresholdCompressor, type ThresholdCompressorOptions } from "./threshold.ts";

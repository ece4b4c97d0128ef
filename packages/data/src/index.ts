export { arrayRecords } from "./array-records.ts";
export { batchTree, type Leaves, type NamedTree } from "./batch-tree.ts";
export {
  type BatchIndices,
  type EvaluationBatch,
  evaluationBatches,
  type EvaluationIndices,
  evaluationIndices,
  type EvaluationOptions,
  trainingBatches,
  type TrainingOptions,
} from "./batches.ts";
export type { Augmentation } from "./augment.ts";
export type { ColourJitter } from "./colour-jitter.ts";
export type { ResizedCrop } from "./resized-crop.ts";
export { type BytePairOptions, type BytePairs, learnBytePairs } from "./byte-pairs.ts";
export { splitRecords, takeRecords } from "./cut-records.ts";
export { type DrawnSamples, drawSamples, sampleClasses } from "./draw-samples.ts";
export {
  type Decoding,
  type EncodedImages,
  type EncodedRecords,
  type ImageCache,
  type ImageSource,
  isEncoded,
  isFileWindows,
  type Samples,
} from "./encoded-records.ts";
export { type FileTokens, fileWindows, type FileWindows } from "./file-windows.ts";
export { DataError } from "./errors.ts";
export { holdOut } from "./hold-out.ts";
export { fetchMnist } from "./fetch-mnist.ts";
export { type IdxArray, parseIdx, takeIdx } from "./idx.ts";
export { type ImageRecords, imageRecords, type NamedBytes } from "./images.ts";
export { mnistClasses, mnistFiles, mnistRecords } from "./mnist.ts";
export { type DataPosition, epochOrder, positionOf, type DataShard, stepsPerEpoch } from "./order.ts";
export {
  type Batch,
  type Field,
  gatherBatch,
  byteRecords,
  type Records,
  sampleBytes,
  type SampleSpecs,
} from "./records.ts";
export { type ResamplingFilter, resamplingFilters } from "./resampling-filters.ts";
export type { LanePosition } from "./streams/lane.ts";
export {
  decoderOf,
  isStreamed,
  numLanesOf,
  type PlacedLane,
  type SampleStream,
  type StreamedRecords,
  type TrainingSamples,
} from "./streams/streamed-records.ts";
export { shareRecords } from "./share-records.ts";
export type { TextTable } from "./text-table.ts";
export { splitText, textRecords } from "./text.ts";
export { byteTokenizer, decodeAfter, type Tokenizer } from "./tokenizer.ts";
export { tokenizerTexts, type TokenizerTexts } from "./tokenizer-json.ts";

export { type BatchIndices, type EvaluationBatch, evaluationBatches, trainingBatches, type TrainingOptions } from "./batches.ts";
export { DataError } from "./errors.ts";
export { fetchMnist } from "./fetch-mnist.ts";
export { type IdxArray, parseIdx, takeIdx } from "./idx.ts";
export { mnistClasses, mnistFiles, mnistRecords, type NamedBytes } from "./mnist.ts";
export { advance, type DataPosition, epochOrder, positionOf, type Shard, shardRange, stepsPerEpoch } from "./order.ts";
export {
  type Batch,
  batchLayout,
  type Field,
  gatherBatch,
  makeRecords,
  type Records,
  sampleBytes,
  takeRecords,
  viewBatch,
  writeBatch,
} from "./records.ts";
export { splitText, textRecords } from "./text.ts";

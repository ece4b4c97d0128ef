import { NdArray } from "@skein/tensor-core";
import { advance, type DataPosition, epochOrder, type DataShard, shardRange, stepsPerEpoch } from "./order.ts";
import { type Batch, gatherBatch, type Records } from "./records.ts";

export interface TrainingOptions extends DataShard {
  /** Global batch size: number of samples over all ranks. */
  readonly batchSize: number;
  readonly seed: number;
  /** Position of the first batch. Default: first batch of epoch 0. */
  readonly position?: DataPosition;
}

/** Indices of this rank's samples in one global batch. */
export interface BatchIndices {
  readonly position: DataPosition;
  readonly indices: Int32Array;
}

/**
 * Yields training batches endlessly. Each epoch has a new random order, and contains each sample at most once, because
 * the last partial batch is dropped.
 *
 * @example
 * ```ts
 * for (const { position, indices } of trainingBatches(8, { batchSize: 4, seed: 1, rank: 0, worldSize: 2 })) {
 *   console.log(indices.length); // 2
 *   if (position.step === 0) break;
 * }
 * ```
 */
export function* trainingBatches(
  count: number,
  { batchSize, seed, rank, worldSize, position = { epoch: 0, step: 0 } }: TrainingOptions,
): Generator<BatchIndices, never> {
  const steps = stepsPerEpoch(count, batchSize);
  const { begin, end } = shardRange(batchSize, { rank, worldSize });
  for (let at = position, order: Int32Array | undefined; ; at = advance(at, steps)) {
    if (order === undefined || at.step === 0) order = epochOrder(seed, at.epoch, count);
    const first = at.step * batchSize;
    yield { position: at, indices: order.subarray(first + begin, first + end) };
  }
}

/** An evaluation batch. `mask` (bool [b]) is true for samples and false for padding. */
export interface EvaluationBatch {
  readonly batch: Batch;
  readonly mask: NdArray;
  readonly validCount: number;
}

export interface EvaluationOptions extends DataShard {
  readonly batchSize: number;
  /**
   * Whether all ranks receive the same number of batches, for models with collectives. The last batches may contain
   * only padding. Default: false.
   */
  readonly evenly?: boolean;
}

/** Sample indices of an evaluation batch. */
export interface EvaluationIndices extends Omit<EvaluationBatch, "batch"> {
  /** Sample indices; 0 for padding, where `mask` is false. */
  readonly indices: Int32Array;
}

/** Yields the sample indices for each batch of `evaluationBatches`, for `count` samples. */
export function* evaluationIndices(
  count: number,
  { batchSize, rank, worldSize, evenly = false }: EvaluationOptions,
): Generator<EvaluationIndices, void> {
  const { begin, end } = shardRange(batchSize, { rank, worldSize });
  for (let first = 0; first < count; first += batchSize) {
    const wanted = Int32Array.from({ length: end - begin }, (_, i) => first + begin + i);
    const valid = wanted.map((index) => (index < count ? 1 : 0));
    const validCount = valid.reduce((total, bit) => total + bit, 0);
    // The last ranks may have no samples left. Each rank still receives a first batch, because all ranks must compile
    // the kernels.
    if (validCount === 0 && !evenly && first > 0) return;
    yield {
      indices: wanted.map((index, i) => (valid[i] === 1 ? index : 0)),
      mask: NdArray.from(valid, [wanted.length], "bool"),
      validCount,
    };
  }
}

/**
 * Yields each sample once, in file order, in batches of equal size. The last batch is padded with copies of sample 0,
 * which `mask` excludes. Each rank receives a contiguous part of each global batch. Each rank receives a first batch,
 * even if it contains only padding.
 *
 * @example
 * ```ts
 * const records = arrayRecords({ inputs: NdArray.from([1, 2, 3], [3, 1]) });
 * const batches = [...evaluationBatches(records, { batchSize: 2, rank: 0, worldSize: 1 })];
 * console.log(batches.length); // 2
 * ```
 */
export function* evaluationBatches(records: Records, options: EvaluationOptions): Generator<EvaluationBatch, void> {
  for (const { indices, mask, validCount } of evaluationIndices(records.count, options))
    yield { batch: gatherBatch(records, indices), mask, validCount };
}

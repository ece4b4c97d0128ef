import { NdArray } from "@skein/tensor-core";
import { advance, type DataPosition, epochOrder, type Shard, shardRange, stepsPerEpoch } from "./order.ts";
import { type Batch, gatherBatch, type Records } from "./records.ts";

export interface TrainingOptions extends Shard {
  /** Samples of all ranks together. */
  readonly batchSize: number;
  readonly seed: number;
  /** Where to begin. Default: the first batch of epoch 0. */
  readonly position?: DataPosition;
}

/** This rank's sample indices of one global batch. */
export interface BatchIndices {
  readonly position: DataPosition;
  readonly indices: Int32Array;
}

/**
 * The batches of training, for ever: each epoch in a new order, every sample at most once per epoch (the last partial
 * batch is dropped).
 *
 * @example for (const { indices } of trainingBatches(60_000, { batchSize: 64, seed: 1, rank: 0, worldSize: 2 })) …
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

/** A batch of evaluation: `mask` (bool [b]) is true for samples that count and false for padding. */
export interface EvaluationBatch {
  readonly batch: Batch;
  readonly mask: NdArray;
  readonly validCount: number;
}

export interface EvaluationOptions extends Shard {
  readonly batchSize: number;
  /** As many batches on all ranks, the last ones maybe of padding alone: for models with collectives. Default: no. */
  readonly evenly?: boolean;
}

/** Samples of a batch of evaluation. */
export interface EvaluationIndices extends Omit<EvaluationBatch, "batch"> {
  /** Sample 0 where `mask` is false. */
  readonly indices: Int32Array;
}

/** Which samples `evaluationBatches` holds, of so many. */
export function* evaluationIndices(
  count: number,
  { batchSize, rank, worldSize, evenly = false }: EvaluationOptions,
): Generator<EvaluationIndices, void> {
  const { begin, end } = shardRange(batchSize, { rank, worldSize });
  for (let first = 0; first < count; first += batchSize) {
    const wanted = Int32Array.from({ length: end - begin }, (_, i) => first + begin + i);
    const valid = wanted.map((index) => (index < count ? 1 : 0));
    const validCount = valid.reduce((total, bit) => total + bit, 0);
    // Ranks further on have nothing left; but all have a first batch, since compiling its kernels takes all of them.
    if (validCount === 0 && !evenly && first > 0) return;
    yield {
      indices: wanted.map((index, i) => (valid[i] === 1 ? index : 0)),
      mask: NdArray.from(valid, [wanted.length], "bool"),
      validCount,
    };
  }
}

/**
 * Every sample once, in file order, in batches of one size: the last is padded with copies of sample 0 that `mask`
 * leaves out. Ranks take contiguous parts of each global batch; each gets a first batch, if of padding alone.
 */
export function* evaluationBatches(records: Records, options: EvaluationOptions): Generator<EvaluationBatch, void> {
  for (const { indices, mask, validCount } of evaluationIndices(records.count, options))
    yield { batch: gatherBatch(records, indices), mask, validCount };
}

import { ArgumentError, permutation, randomKey } from "@skein/tensor-core";
import { foldInKey } from "@skein/tensor-core/backend";

/**
 * Position in the training data: `step` global batches of epoch `epoch` have been consumed. Plain data that is stored
 * in checkpoints.
 */
export interface DataPosition {
  readonly epoch: number;
  readonly step: number;
}

/**
 * Value folded into the seed's key to get the random stream for shuffles. Dropout uses another value, and weights use
 * the seed's key itself.
 */
const shuffleStream = 0x0da7a;

/**
 * Returns the order of samples in an epoch. Depends only on seed, epoch and count, not on world size or batch size.
 *
 * @example
 * ```ts
 * console.log([...epochOrder(1, 0, 4)].toSorted()); // [0, 1, 2, 3]
 * ```
 */
export const epochOrder = (seed: number, epoch: number, count: number): Int32Array =>
  permutation(foldInKey(foldInKey(randomKey(seed).data, shuffleStream), epoch), count);

/**
 * Returns the number of complete global batches in a training epoch; the last partial batch is dropped.
 *
 * @example
 * ```ts
 * console.log(stepsPerEpoch(60_000, 64)); // 937
 * ```
 */
export const stepsPerEpoch = (count: number, batchSize: number): number => {
  if (batchSize > count)
    throw new ArgumentError(
      `a batch of ${batchSize} samples cannot be filled from ${count}; use a batch of at most ${count}`,
    );
  return Math.floor(count / batchSize);
};

/** Index of a rank, and number of ranks that share each batch. */
export interface DataShard {
  readonly rank: number;
  readonly worldSize: number;
}

/**
 * Returns this rank's range of a global batch. Ranks receive contiguous parts in rank order, so P ranks with b/P
 * samples each use the same samples as one rank with b samples.
 *
 * @throws ArgumentError unless `worldSize` divides `batchSize`.
 */
export const shardRange = (
  batchSize: number,
  { rank, worldSize }: DataShard,
): { readonly begin: number; readonly end: number } => {
  if (batchSize % worldSize !== 0) {
    throw new ArgumentError(
      `a batch of ${batchSize} samples is not divisible by ${worldSize} ranks; use a multiple of ${worldSize}, such as ${Math.ceil(batchSize / worldSize) * worldSize}`,
    );
  }
  const size = batchSize / worldSize;
  return { begin: rank * size, end: (rank + 1) * size };
};

/** Returns the position after one more step. @param steps Number of steps per epoch. */
export const advance = ({ epoch, step }: DataPosition, steps: number): DataPosition =>
  step + 1 < steps ? { epoch, step: step + 1 } : { epoch: epoch + 1, step: 0 };

/**
 * Returns the position after `step` steps from the beginning. @param steps Number of steps per epoch.
 *
 * @example
 * ```ts
 * console.log(positionOf(25, 10)); // { epoch: 2, step: 5 }
 * ```
 */
export const positionOf = (step: number, steps: number): DataPosition => ({
  epoch: Math.floor(step / steps),
  step: step % steps,
});

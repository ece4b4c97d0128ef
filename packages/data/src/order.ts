import { ArgumentError, permutation, randomKey } from "@skein/tensor-core";
import { foldInKey } from "@skein/tensor-core/backend";

/**
 * Where training stands in its data: `step` global batches of `epoch` are consumed. Plain data; goes into checkpoints.
 */
export interface DataPosition {
  readonly epoch: number;
  readonly step: number;
}

/** The stream of shuffles under a seed, apart from those of weights (the seed itself) and dropout. */
const shuffleStream = 0x0da7a;

/** The order of samples in an epoch. A function of seed and epoch alone: world size and batch size do not enter. */
export const epochOrder = (seed: number, epoch: number, count: number): Int32Array =>
  permutation(foldInKey(foldInKey(randomKey(seed).data, shuffleStream), epoch), count);

/** Full global batches in an epoch of training; a rest is dropped. */
export const stepsPerEpoch = (count: number, batchSize: number): number => {
  if (batchSize > count)
    throw new ArgumentError(
      `a batch of ${batchSize} samples cannot be filled from ${count}; use a batch of at most ${count}`,
    );
  return Math.floor(count / batchSize);
};

/** One rank among those that share each batch. */
export interface Shard {
  readonly rank: number;
  readonly worldSize: number;
}

/**
 * This rank's range of a global batch: ranks take contiguous parts in rank order, so P ranks × b/P see together what
 * one rank × b sees.
 *
 * @throws ArgumentError unless `worldSize` divides `batchSize`.
 */
export const shardRange = (
  batchSize: number,
  { rank, worldSize }: Shard,
): { readonly begin: number; readonly end: number } => {
  if (batchSize % worldSize !== 0) {
    throw new ArgumentError(
      `a batch of ${batchSize} samples does not divide among ${worldSize} ranks; use a multiple of ${worldSize}, such as ${Math.ceil(batchSize / worldSize) * worldSize}`,
    );
  }
  const size = batchSize / worldSize;
  return { begin: rank * size, end: (rank + 1) * size };
};

/** The position after one more step. */
export const advance = ({ epoch, step }: DataPosition, steps: number): DataPosition =>
  step + 1 < steps ? { epoch, step: step + 1 } : { epoch: epoch + 1, step: 0 };

/** The position after `step` steps from the beginning. */
export const positionOf = (step: number, steps: number): DataPosition => ({
  epoch: Math.floor(step / steps),
  step: step % steps,
});

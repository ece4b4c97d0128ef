import { ArgumentError, pad, reshape, slice, type Tensor } from "@skein/tensor-core";

/**
 * Share `count` entries out among blocks of at most `blockSize`: as few blocks as possible, all of one size, and that as small as possible. So
 * fewer zeros fill the last block than there are blocks, and a short vector is one block of its own length.
 *
 * @throws ArgumentError unless `blockSize` is an integer from 1.
 */
export const blockShape = (count: number, blockSize: number): readonly [rows: number, size: number] => {
  if (!(Number.isInteger(blockSize) && blockSize >= 1))
    throw new ArgumentError(`blocks of ${blockSize} entries are not possible; use an integer from 1, for example 256`);
  const rows = Math.ceil(count / blockSize);
  return [rows, rows === 0 ? 1 : Math.ceil(count / rows)];
};

/** Cut a vector `[n]` into blocks, `[rows, size]` of `blockShape`; zeros fill the last. */
export const toBlocks = (flat: Tensor, blockSize: number): Tensor => {
  const count = flat.shape[0]!;
  const [rows, size] = blockShape(count, blockSize);
  return reshape(pad(flat, [[0, rows * size - count]]), [rows, size]);
};

/** The first `count` entries of blocks, `[count]`. */
export const fromBlocks = (blocks: Tensor, count: number): Tensor => slice(reshape(blocks, [-1]), [0], [count]);

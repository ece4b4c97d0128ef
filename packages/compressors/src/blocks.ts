import { ArgumentError, concat, flatten, pad, reshape, slice, split, type Tensor } from "@skein/tensor-core";

/**
 * Share `count` entries out among blocks of at most `blockSize`: as few blocks as possible, all of one size, and that
 * as small as possible. So fewer zeros fill the last block than there are blocks, and a short vector is one block of
 * its own length.
 *
 * @throws ArgumentError unless `blockSize` is an integer from 1.
 */
export const blockShape = (count: number, blockSize: number): readonly [rows: number, size: number] => {
  if (!(Number.isInteger(blockSize) && blockSize >= 1))
    throw new ArgumentError(`blocks of ${blockSize} entries are not possible; use an integer from 1, for example 256`);
  const rows = Math.ceil(count / blockSize);
  return [rows, rows === 0 ? 1 : Math.ceil(count / rows)];
};

/** Blocks that are worked on together. */
export interface BlockPart {
  readonly rows: number;
  readonly size: number;
  /**
   * Entries of the vector that lie in them, from `begin` on; fewer than `rows · size` where zeros fill the last block.
   */
  readonly begin: number;
  readonly entries: number;
}

/**
 * The blocks of `blockShape` in one part; or in two where the last block must be filled, so that all others can be read
 * where they lie.
 */
export const blockParts = (count: number, blockSize: number): readonly BlockPart[] => {
  const [rows, size] = blockShape(count, blockSize);
  if (rows * size === count) return [{ rows, size, begin: 0, entries: count }];
  const begin = (rows - 1) * size;
  return [
    { rows: rows - 1, size, begin: 0, entries: begin },
    { rows: 1, size, begin, entries: count - begin },
  ];
};

/** Cut a vector `[n]` into the blocks of each part, `[rows, size]`. */
export const toBlocks = (flat: Tensor, blockSize: number): Tensor[] =>
  blockParts(flat.shape[0]!, blockSize).map(({ rows, size, begin, entries }) =>
    reshape(pad(slice(flat, [begin], [begin + entries]), [[0, rows * size - entries]]), [rows, size]),
  );

/** The first `count` entries of parts, `[count]`. */
export const fromBlocks = (parts: readonly Tensor[], count: number): Tensor => {
  let begin = 0;
  return concat(
    parts.map((part) => {
      const flat = flatten(part);
      const entries = Math.min(flat.shape[0]!, count - begin);
      begin += entries;
      return slice(flat, [0], [entries]);
    }),
  );
};

/** Cut a tensor with a row per block, `[rows, ...]`, into those of each part. */
export const splitBlocks = (perBlock: Tensor, count: number, blockSize: number): Tensor[] =>
  split(
    perBlock,
    blockParts(count, blockSize).map(({ rows }) => rows),
  );

import { ArgumentError, concat, flatten, pad, reshape, slice, split, type Tensor } from "@skein/tensor-core";

/**
 * Splits `count` entries into blocks of at most `blockSize` entries. The number of blocks is minimal, and all blocks
 * have the smallest size that fits. So the last block is padded with fewer zeros than there are blocks, and a short
 * vector is a single block without padding.
 *
 * @throws ArgumentError unless `blockSize` is a positive integer.
 */
export const blockShape = (count: number, blockSize: number): readonly [rows: number, size: number] => {
  if (!(Number.isInteger(blockSize) && blockSize >= 1))
    throw new ArgumentError(
      `block size ${blockSize} is not a positive integer; use an integer from 1, for example 256`,
    );
  const rows = Math.ceil(count / blockSize);
  return [rows, rows === 0 ? 1 : Math.ceil(count / rows)];
};

/** A range of consecutive blocks that are processed as one tensor, `[rows, size]`. */
export interface BlockPart {
  readonly rows: number;
  readonly size: number;
  /**
   * Index of the part's first entry in the vector, and number of entries, which is less than `rows · size` if the last
   * block is padded with zeros.
   */
  readonly begin: number;
  readonly entries: number;
}

/**
 * Returns the blocks of `blockShape` in one part, or in two parts if the last block needs padding. All blocks without
 * padding can be read in place.
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

/** Cuts a vector `[n]` into the blocks of each part, `[rows, size]`. */
export const toBlocks = (flat: Tensor, blockSize: number): Tensor[] =>
  blockParts(flat.shape[0]!, blockSize).map(({ rows, size, begin, entries }) =>
    reshape(pad(slice(flat, [begin], [begin + entries]), [[0, rows * size - entries]]), [rows, size]),
  );

/** Joins parts, and returns the first `count` entries, `[count]`. */
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

/**
 * Splits a tensor with one row per block, `[rows, ...]`, along the first dimension: one tensor per part of
 * `blockParts`.
 */
export const splitBlocks = (perBlock: Tensor, count: number, blockSize: number): Tensor[] =>
  split(
    perBlock,
    blockParts(count, blockSize).map(({ rows }) => rows),
  );

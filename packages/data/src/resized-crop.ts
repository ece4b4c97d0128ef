import { augmentationWord, drawn, drawnBetween } from "./random-draw.ts";

/** Random crops that are resized to the sample size. */
export interface ResizedCrop {
  /** Minimum and maximum area of a crop relative to the area of the image, in (0, 1]. */
  readonly scale: readonly [number, number];
  /** Minimum and maximum aspect ratio of a crop, width divided by height, above 0. */
  readonly ratio: readonly [number, number];
}

/** A rectangle in an image, in pixels. */
export interface Region {
  readonly row: number;
  readonly column: number;
  readonly rows: number;
  readonly columns: number;
}

const tries = 10;

/**
 * Draws a random region of an image. Area, logarithm of the aspect ratio, and position inside the image are drawn
 * uniformly. If no region fits into the image in ten attempts, the result is the largest centered region with an
 * allowed aspect ratio.
 *
 * Source: `RandomResizedCrop.get_params` of torchvision 0.14, after Szegedy et al. 2015, arXiv 1409.4842, §6.
 */
export const drawRegion = (
  [rows, columns]: readonly [number, number],
  { scale, ratio }: ResizedCrop,
  key: ArrayLike<number>,
): Region => {
  for (let attempt = 0; attempt < tries; attempt++) {
    const word = augmentationWord.region + 4 * attempt;
    const area = rows * columns * drawnBetween(key, word, scale[0], scale[1]);
    const shape = Math.exp(drawnBetween(key, word + 1, Math.log(ratio[0]), Math.log(ratio[1])));
    const [wide, high] = [Math.round(Math.sqrt(area * shape)), Math.round(Math.sqrt(area / shape))];
    if (wide < 1 || wide > columns || high < 1 || high > rows) continue;
    return {
      row: drawn(key, word + 2, rows - high + 1),
      column: drawn(key, word + 3, columns - wide + 1),
      rows: high,
      columns: wide,
    };
  }
  const shape = Math.min(Math.max(columns / rows, ratio[0]), ratio[1]);
  const wide = Math.min(columns, Math.max(1, Math.round(rows * shape)));
  const high = Math.min(rows, Math.max(1, Math.round(columns / shape)));
  return { row: (rows - high) >> 1, column: (columns - wide) >> 1, rows: high, columns: wide };
};

/**
 * Returns, for each target pixel along one dimension, the indices of the two neighboring source pixels and the weight
 * of the second pixel.
 */
const neighbours = (to: number, from: number, begin: number): readonly (readonly [number, number, number])[] =>
  Array.from({ length: to }, (_, i) => {
    const position = Math.min(Math.max(((i + 0.5) * from) / to - 0.5, 0), from - 1);
    const first = Math.floor(position);
    return [begin + first, begin + Math.min(first + 1, from - 1), position - first] as const;
  });

/**
 * Resizes a region of an image by bilinear interpolation between pixel centers. Edge pixels are repeated outside the
 * region. There is no antialiasing when a region is shrunk, because a region is rarely more than twice as wide as the
 * target.
 *
 * @param source u8 [rows, columns, channels] with `sourceColumns` columns.
 * @param target u8 [`rows`, `columns`, channels].
 */
export const resizeRegion = (
  source: Uint8Array,
  sourceColumns: number,
  region: Region,
  target: Uint8Array,
  [rows, columns, channels]: readonly [number, number, number],
): void => {
  const across = neighbours(columns, region.columns, region.column);
  let to = 0;
  for (const [above, below, down] of neighbours(rows, region.rows, region.row))
    for (const [left, right, over] of across)
      for (let channel = 0; channel < channels; channel++) {
        const at = (row: number, column: number): number =>
          source[(row * sourceColumns + column) * channels + channel]!;
        const upper = at(above, left) * (1 - over) + at(above, right) * over;
        const lower = at(below, left) * (1 - over) + at(below, right) * over;
        target[to++] = Math.round(upper * (1 - down) + lower * down);
      }
};

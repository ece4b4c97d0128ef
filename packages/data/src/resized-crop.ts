import { augmentationWord, drawn, drawnBetween } from "./random-draw.ts";

/** Which parts of an image are shown in its place. */
export interface ResizedCrop {
  /** Least and greatest part of the image's area, in (0, 1]. */
  readonly scale: readonly [number, number];
  /** Least and greatest width over height, above 0. */
  readonly ratio: readonly [number, number];
}

/** A rectangle of an image, in pixels. */
export interface Region {
  readonly row: number;
  readonly column: number;
  readonly rows: number;
  readonly columns: number;
}

const tries = 10;

/**
 * Draw a region of an image: its area uniformly, the logarithm of its shape uniformly, then its place among those that
 * lie inside. Where ten tries find none that fits, the greatest one in the middle whose shape is allowed.
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

/** Where along one side a pixel of the target lies in the source: two neighbours, and the second one's weight. */
const neighbours = (to: number, from: number, begin: number): readonly (readonly [number, number, number])[] =>
  Array.from({ length: to }, (_, i) => {
    const place = Math.min(Math.max(((i + 0.5) * from) / to - 0.5, 0), from - 1);
    const first = Math.floor(place);
    return [begin + first, begin + Math.min(first + 1, from - 1), place - first] as const;
  });

/**
 * Bring a region of an image to another size, by bilinear interpolation between the centres of pixels; the edge goes on
 * outside. Not smoothed first where it shrinks: a region that is shown is seldom more than twice as wide as its place.
 *
 * @param source u8 [rows, columns, channels] of `columns` columns. @param target u8 [`rows`, `columns`, channels].
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

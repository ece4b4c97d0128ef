/** Side length of an MNIST image in pixels. `boxSide` is the side length of the box in which the digit is placed. */
export const side = 28;
const boxSide = 20;

/** Ink strength of each pixel of the drawing, 0 to 255, row by row. */
export interface Ink {
  readonly strengths: Uint8Array | Uint8ClampedArray;
  readonly width: number;
  readonly height: number;
}

/**
 * Returns the number of drawing pixels per image pixel, and the point of the drawing that becomes the center of the
 * image. Undefined for an empty drawing.
 */
const layoutOf = ({ strengths, width }: Ink) => {
  let [left, top, right, bottom, mass, massX, massY] = [Infinity, Infinity, 0, 0, 0, 0, 0];
  strengths.forEach((strength, i) => {
    if (strength === 0) return;
    const [x, y] = [i % width, Math.floor(i / width)];
    [left, right, top, bottom] = [Math.min(left, x), Math.max(right, x + 1), Math.min(top, y), Math.max(bottom, y + 1)];
    [mass, massX, massY] = [mass + strength, massX + strength * (x + 0.5), massY + strength * (y + 0.5)];
  });
  if (mass === 0) return undefined;
  const scale = Math.max(right - left, bottom - top) / boxSide;
  // The center point is limited so that no ink is outside of the image, even if the center of mass is far from the
  // center of the drawing.
  const middle = (ofMass: number, begin: number, end: number): number =>
    Math.min(Math.max(ofMass, end - (side / 2) * scale), begin + (side / 2) * scale);
  return { scale, x: middle(massX / mass, left, right), y: middle(massY / mass, top, bottom) };
};

/** Returns, for each unit interval [i, i + 1] that overlaps [from, to], the pair [i, length of the overlap]. */
const parts = (from: number, to: number): [number, number][] => {
  const units: [number, number][] = [];
  for (let unit = Math.floor(from); unit < to; unit++)
    units.push([unit, Math.min(to, unit + 1) - Math.max(from, unit)]);
  return units;
};

/**
 * Converts a drawing to MNIST's format: scaled to fit into a box of 20 × 20 pixels with its aspect ratio, each pixel
 * the mean of the covered area, and placed in 28 × 28 pixels with the center of mass at the center. A network trained
 * on images in this format recognizes other images poorly.
 *
 * @returns 784 bytes, 0 is background; undefined for an empty drawing. Source: LeCun, Cortes and Burges, The MNIST
 * database of handwritten digits.
 */
export const centredDigit = (ink: Ink): Uint8Array<ArrayBuffer> | undefined => {
  const layout = layoutOf(ink);
  if (layout === undefined) return undefined;
  const { strengths, width, height } = ink;
  const { scale } = layout;
  const cover = (middle: number, index: number): [number, number][] =>
    parts(middle + (index - side / 2) * scale, middle + (index + 1 - side / 2) * scale);
  const [columns, rows] = [layout.x, layout.y].map((middle) =>
    Array.from({ length: side }, (_, i) => cover(middle, i)),
  ) as [[number, number][][], [number, number][][]];
  const digit = new Uint8Array(side * side);
  digit.forEach((_, i) => {
    let sum = 0;
    for (const [y, high] of rows[Math.floor(i / side)]!) {
      for (const [x, wide] of columns[i % side]!) {
        if (x >= 0 && y >= 0 && x < width && y < height) sum += strengths[y * width + x]! * high * wide;
      }
    }
    digit[i] = Math.round(sum / scale ** 2);
  });
  return digit;
};

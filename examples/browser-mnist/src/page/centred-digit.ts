/** Pixels on each side of a picture of MNIST, and of the box that its digit fills. */
export const side = 28;
const boxSide = 20;

/** Strength of ink, 0…255, row by row. */
export interface Ink {
  readonly strengths: Uint8Array | Uint8ClampedArray;
  readonly width: number;
  readonly height: number;
}

/**
 * How many pixels of a drawing make one of the picture, and what of it comes into the middle. Undefined where there is
 * no ink.
 */
const placeOf = ({ strengths, width }: Ink) => {
  let [left, top, right, bottom, mass, massX, massY] = [Infinity, Infinity, 0, 0, 0, 0, 0];
  strengths.forEach((strength, i) => {
    if (strength === 0) return;
    const [x, y] = [i % width, Math.floor(i / width)];
    [left, right, top, bottom] = [Math.min(left, x), Math.max(right, x + 1), Math.min(top, y), Math.max(bottom, y + 1)];
    [mass, massX, massY] = [mass + strength, massX + strength * (x + 0.5), massY + strength * (y + 0.5)];
  });
  if (mass === 0) return undefined;
  const scale = Math.max(right - left, bottom - top) / boxSide;
  // No ink falls off the paper, however far its mass is from its middle.
  const middle = (ofMass: number, begin: number, end: number): number =>
    Math.min(Math.max(ofMass, end - (side / 2) * scale), begin + (side / 2) * scale);
  return { scale, x: middle(massX / mass, left, right), y: middle(massY / mass, top, bottom) };
};

/** How much of [from, to] each whole unit has, as [unit, length]. */
const parts = (from: number, to: number): [number, number][] => {
  const units: [number, number][] = [];
  for (let unit = Math.floor(from); unit < to; unit++)
    units.push([unit, Math.min(to, unit + 1) - Math.max(from, unit)]);
  return units;
};

/**
 * A drawing as MNIST has its digits: made as large as fits a box of 20 × 20 pixels, proportions kept, each pixel the
 * mean of what it covers, and laid into 28 × 28 pixels so that the centre of mass is in the middle. A network that
 * learned from such pictures reads no others well.
 *
 * @returns 784 bytes, 0 is paper; undefined where nothing is drawn.
 * Source: LeCun, Cortes and Burges, The MNIST database of handwritten digits.
 */
export const centredDigit = (ink: Ink): Uint8Array<ArrayBuffer> | undefined => {
  const place = placeOf(ink);
  if (place === undefined) return undefined;
  const { strengths, width, height } = ink;
  const { scale } = place;
  const cover = (middle: number, index: number): [number, number][] =>
    parts(middle + (index - side / 2) * scale, middle + (index + 1 - side / 2) * scale);
  const [columns, rows] = [place.x, place.y].map((middle) =>
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

import { showMiddle } from "./augment.ts";
import { type Decoding, isResizedHere } from "./encoded-records.ts";
import { type Box, channels, type Pixels, type Resampler } from "./resample.ts";

/** The middle of an image, of the shape of what it is to fill. */
const middle = (rows: number, columns: number, [high, wide]: readonly [number, number]): Box => {
  const scale = Math.min(rows / high, columns / wide);
  const [keptRows, keptColumns] = [Math.min(rows, high * scale), Math.min(columns, wide * scale)];
  const [top, left] = [(rows - keptRows) / 2, (columns - keptColumns) / 2];
  return { top, left, bottom: top + keptRows, right: left + keptColumns };
};

/** The sides of an image that is left whole within others. */
const whole = (rows: number, columns: number, [high, wide]: readonly [number, number]): readonly [number, number] => {
  const scale = Math.min(high / rows, wide / columns);
  const side = (length: number, most: number): number => Math.max(1, Math.min(most, Math.round(length * scale)));
  return [side(rows, high), side(columns, wide)];
};

/** Whether an orientation of EXIF's exchanges rows and columns. */
const isOnItsSide = (orientation: number): boolean => orientation >= 5;

/**
 * Turn an image upright.
 *
 * @param orientation EXIF's: which side the stored image's first row and first column are.
 */
export const upright = ({ bytes, rows, columns }: Pixels, orientation: number): Pixels => {
  if (orientation === 1) return { bytes, rows, columns };
  const [high, wide] = isOnItsSide(orientation) ? [columns, rows] : [rows, columns];
  const result = new Uint8Array(bytes.length);
  for (let row = 0, to = 0; row < high; row++)
    for (let column = 0; column < wide; column++) {
      const down = [3, 4, 7, 8].includes(orientation) ? high - 1 - row : row;
      const across = [2, 3, 6, 7].includes(orientation) ? wide - 1 - column : column;
      const from = (isOnItsSide(orientation) ? across * columns + down : down * columns + across) * channels;
      for (let channel = 0; channel < channels; channel++) result[to++] = bytes[from + channel]!;
    }
  return { bytes: result, rows: high, columns: wide };
};

/** What of a decoding says where pixels go. */
type Fitting = Omit<Decoding, "channels">;

/** Rows and columns that an image is brought to, before its middle is cut out. */
const resizedSides = (
  rows: number,
  columns: number,
  resize: NonNullable<Decoding["resize"]>,
): readonly [number, number] => {
  if (typeof resize !== "number") return resize;
  const longer = Math.trunc((resize * Math.max(rows, columns)) / Math.min(rows, columns));
  return rows <= columns ? [resize, longer] : [longer, resize];
};

/** The middle of an image that was resized whole. */
const middleOfResized = (
  image: Pixels,
  resize: NonNullable<Decoding["resize"]>,
  { size, resample }: Fitting,
  resampler: Resampler,
): Uint8Array => {
  const sides = resizedSides(image.rows, image.columns, resize);
  const shown = [Math.min(sides[0], size[0]), Math.min(sides[1], size[1])] as const;
  const bytes = resampler.resample(image, sides, undefined, resample, shown);
  const result = new Uint8Array(size[0] * size[1] * channels);
  showMiddle(bytes, [...shown, channels], result, [...size, channels]);
  return result;
};

/** An image that lies upright, or would but for `orientation`, as its fit says. */
const fitted = (
  image: Pixels,
  orientation: number,
  { size, fit, resample }: Fitting,
  resampler: Resampler,
): Uint8Array => {
  const { rows, columns } = image;
  const stored = isOnItsSide(orientation) ? ([size[1], size[0]] as const) : size;
  const [high, wide] = fit === "contain" ? whole(rows, columns, stored) : stored;
  const box = fit === "cover" ? middle(rows, columns, stored) : undefined;
  const bytes = resampler.resample(image, [high, wide], box, resample);
  const shown = upright({ bytes, rows: high, columns: wide }, orientation);
  if (shown.rows === size[0] && shown.columns === size[1])
    return shown.bytes === bytes ? Uint8Array.from(bytes) : shown.bytes;
  const result = new Uint8Array(size[0] * size[1] * channels);
  const [top, left] = [Math.floor((size[0] - shown.rows) / 2), Math.floor((size[1] - shown.columns) / 2)];
  for (let row = 0; row < shown.rows; row++)
    result.set(
      shown.bytes.subarray(row * shown.columns * channels, (row + 1) * shown.columns * channels),
      ((top + row) * size[1] + left) * channels,
    );
  return result;
};

/**
 * A decoded image as a sample: u8 [rows, columns, 3], in memory of its own.
 *
 * @param orientation EXIF's, of the image as it is stored.
 */
export const fitImage = (image: Pixels, orientation: number, decoding: Fitting, resampler: Resampler): Uint8Array => {
  // What is turned after it was resized is rounded otherwise, in rows before columns.
  if (!isResizedHere(decoding)) return fitted(image, orientation, decoding, resampler);
  const turned = upright(image, orientation);
  return decoding.resize === undefined
    ? fitted(turned, 1, decoding, resampler)
    : middleOfResized(turned, decoding.resize, decoding, resampler);
};

const coloured = (grey: Uint8Array): Uint8Array => {
  const pixels = new Uint8Array(3 * grey.length);
  for (let i = 0, to = 0; i < grey.length; i++, to += 3) pixels.fill(grey[i]!, to, to + 3);
  return pixels;
};

const onlyRed = (pixels: Uint8Array): Uint8Array =>
  Uint8Array.from({ length: pixels.length / 3 }, (_, i) => pixels[3 * i]!);

/**
 * A decoded image of one channel or three as a sample of one or three: u8 [rows, columns, channels].
 *
 * @param image grey, u8 [rows, columns], where samples are grey; likewise, or u8 [rows, columns, 3], where not.
 * @param orientation EXIF's, of the image as it is stored.
 */
export const sampleOf = (image: Pixels, orientation: number, decoding: Decoding, resampler: Resampler): Uint8Array => {
  const { bytes, rows, columns } = image;
  const isGrey = bytes.length === rows * columns;
  const sample = fitImage(isGrey ? { ...image, bytes: coloured(bytes) } : image, orientation, decoding, resampler);
  return decoding.channels === 1 ? onlyRed(sample) : sample;
};

import { cropCenter } from "./augment.ts";
import { type Decoding, isResizedHere } from "./encoded-records.ts";
import { type Box, channels, type Pixels, type Resampler } from "./resample.ts";

/** Returns the largest centered box of an image with the aspect ratio of the target. */
const middle = (rows: number, columns: number, [high, wide]: readonly [number, number]): Box => {
  const scale = Math.min(rows / high, columns / wide);
  const [keptRows, keptColumns] = [Math.min(rows, high * scale), Math.min(columns, wide * scale)];
  const [top, left] = [(rows - keptRows) / 2, (columns - keptColumns) / 2];
  return { top, left, bottom: top + keptRows, right: left + keptColumns };
};

/** Returns the largest size with the image's aspect ratio that fits into the target. */
const whole = (rows: number, columns: number, [high, wide]: readonly [number, number]): readonly [number, number] => {
  const scale = Math.min(high / rows, wide / columns);
  const side = (length: number, limit: number): number => Math.max(1, Math.min(limit, Math.round(length * scale)));
  return [side(rows, high), side(columns, wide)];
};

/** Whether an EXIF orientation swaps rows and columns. */
const isOnItsSide = (orientation: number): boolean => orientation >= 5;

/**
 * Rotates or mirrors a stored image so that it is upright.
 *
 * @param orientation EXIF orientation, 1 (upright) to 8. The orientation says which sides of the upright image the
 * first stored row and the first stored column are.
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

/** Decoding options that determine the geometry of the result. */
type Fitting = Omit<Decoding, "channels">;

/** Returns the number of rows and columns after resizing, before the center crop. */
const resizedSides = (
  rows: number,
  columns: number,
  resize: NonNullable<Decoding["resize"]>,
): readonly [number, number] => {
  if (typeof resize !== "number") return resize;
  const longer = Math.trunc((resize * Math.max(rows, columns)) / Math.min(rows, columns));
  return rows <= columns ? [resize, longer] : [longer, resize];
};

/** Resizes a complete image and returns its center crop. */
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
  cropCenter(bytes, [...shown, channels], result, [...size, channels]);
  return result;
};

/** Fits an image to the sample size, then rotates or mirrors the result by `orientation`. */
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
 * Converts a decoded image to a sample, u8 [rows, columns, 3], in new memory.
 *
 * @param orientation EXIF orientation of the stored image.
 */
export const fitImage = (image: Pixels, orientation: number, decoding: Fitting, resampler: Resampler): Uint8Array => {
  // Rotating after resizing would round differently, because rows are resampled before columns.
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
 * Converts a decoded image of 1 or 3 channels to a sample of 1 or 3 channels, u8 [rows, columns, channels].
 *
 * @param image u8 [rows, columns] for gray samples; u8 [rows, columns] or [rows, columns, 3] for color samples.
 * @param orientation EXIF orientation of the stored image.
 */
export const sampleOf = (image: Pixels, orientation: number, decoding: Decoding, resampler: Resampler): Uint8Array => {
  const { bytes, rows, columns } = image;
  const isGrey = bytes.length === rows * columns;
  const sample = fitImage(isGrey ? { ...image, bytes: coloured(bytes) } : image, orientation, decoding, resampler);
  return decoding.channels === 1 ? onlyRed(sample) : sample;
};

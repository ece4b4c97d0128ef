import { augmentationWord as word, drawn, drawnBetween } from "./random-draw.ts";

/**
 * Strength x of each color change. The factor of a change is drawn from [1 − x, 1 + x], clamped to at least 0. 0: no
 * change.
 */
export interface ColourJitter {
  readonly brightness: number;
  readonly contrast: number;
  readonly saturation: number;
}

type Change = keyof ColourJitter;

const orders: readonly (readonly Change[])[] = [
  ["brightness", "contrast", "saturation"],
  ["brightness", "saturation", "contrast"],
  ["contrast", "brightness", "saturation"],
  ["contrast", "saturation", "brightness"],
  ["saturation", "brightness", "contrast"],
  ["saturation", "contrast", "brightness"],
];

/** Returns the luma of a pixel (ITU-R BT.601), rounded down to an integer. */
const greyOf = (image: Uint8Array, at: number, channels: number): number =>
  channels === 3 ? Math.floor(0.2989 * image[at]! + 0.587 * image[at + 1]! + 0.114 * image[at + 2]!) : image[at]!;

/** Returns `factor` · `own` + (1 − `factor`) · `other`, clamped and rounded to a byte. */
const blended = (own: number, other: number, factor: number): number =>
  Math.round(Math.min(Math.max(factor * own + (1 - factor) * other, 0), 255));

const meanGrey = (image: Uint8Array, channels: number): number => {
  let sum = 0;
  for (let at = 0; at < image.length; at += channels) sum += greyOf(image, at, channels);
  return sum / (image.length / channels);
};

/**
 * Changes the colors of an image in place. Each change computes x ← f·x + (1 − f)·y for each value x, with one random
 * factor f. y is black for brightness, the mean gray of the image for contrast, and the gray of the pixel for
 * saturation. The order of the changes is random. Saturation does not change a gray image. Results are rounded.
 * torchvision truncates them, which darkens images by half a level per change.
 *
 * Source: `ColorJitter` and `adjust_brightness`, `adjust_contrast`, `adjust_saturation` of torchvision 0.14, on bytes.
 *
 * @param image Image, u8 [rows, columns, channels], with 1 or 3 channels.
 */
export const jitterColours = (
  image: Uint8Array,
  channels: number,
  jitter: ColourJitter,
  key: ArrayLike<number>,
): void => {
  for (const change of orders[drawn(key, word.order, orders.length)]!) {
    const strength = jitter[change];
    if (strength === 0) continue;
    const factor = drawnBetween(key, word[change], Math.max(0, 1 - strength), 1 + strength);
    const mean = change === "contrast" ? meanGrey(image, channels) : 0;
    for (let at = 0; at < image.length; at += channels) {
      const other = change === "saturation" ? greyOf(image, at, channels) : mean;
      for (let channel = 0; channel < channels; channel++)
        image[at + channel] = blended(image[at + channel]!, other, factor);
    }
  }
};

import { augmentationWord as word, drawn, drawnBetween } from "./random-draw.ts";

/** How far colours may change: a factor is drawn from 1 − x to 1 + x, but none below 0. 0: not at all. */
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

/** Luma of a pixel as whole bytes have it: ITU-R BT.601. */
const greyOf = (image: Uint8Array, at: number, channels: number): number =>
  channels === 3 ? Math.floor(0.2989 * image[at]! + 0.587 * image[at + 1]! + 0.114 * image[at + 2]!) : image[at]!;

/** Between another value and the image's own, or beyond it, as a byte. */
const blended = (own: number, other: number, factor: number): number =>
  Math.round(Math.min(Math.max(factor * own + (1 - factor) * other, 0), 255));

const meanGrey = (image: Uint8Array, channels: number): number => {
  let sum = 0;
  for (let at = 0; at < image.length; at += channels) sum += greyOf(image, at, channels);
  return sum / (image.length / channels);
};

/**
 * Change the colours of an image in its place: x ← f·x + (1 − f)·y with a factor f each, where y is black for
 * brightness, the mean grey of the image for contrast, and the pixel's own grey for saturation; in an order that is
 * drawn, too. A grey image has no saturation to change.
 *
 * @param image u8 [rows, columns, channels], of 1 or 3 channels.
 * Rounded, where torchvision cuts off what is behind the point, which would make images darker by half a level a change.
 * Source: `ColorJitter` and `adjust_brightness`, `adjust_contrast`, `adjust_saturation` of torchvision 0.14, on bytes.
 */
export const jitterColours = (
  image: Uint8Array,
  channels: number,
  jitter: ColourJitter,
  key: ArrayLike<number>,
): void => {
  for (const change of orders[drawn(key, word.order, orders.length)]!) {
    const most = jitter[change];
    if (most === 0) continue;
    const factor = drawnBetween(key, word[change], Math.max(0, 1 - most), 1 + most);
    const mean = change === "contrast" ? meanGrey(image, channels) : 0;
    for (let at = 0; at < image.length; at += channels) {
      const other = change === "saturation" ? greyOf(image, at, channels) : mean;
      for (let channel = 0; channel < channels; channel++)
        image[at + channel] = blended(image[at + channel]!, other, factor);
    }
  }
};

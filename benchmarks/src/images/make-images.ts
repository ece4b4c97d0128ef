import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import sharp from "sharp";

/** Number of rows and columns of the JPEGs, a usual size of photographs for training. */
const side = 256;
const classes = 10;

/**
 * Returns RGB pixels of an image: waves whose number depends on the class, plus noise. The file size of the JPEG is
 * similar to the file size of a photograph.
 */
const pixelsOf = (index: number): Uint8Array => {
  const pixels = new Uint8Array(side * side * 3);
  const waves = 2 + (index % classes);
  let noise = index + 1;
  for (let row = 0, at = 0; row < side; row++)
    for (let column = 0; column < side; column++)
      for (let channel = 0; channel < 3; channel++, at++) {
        noise = (Math.imul(noise, 1_664_525) + 1_013_904_223) | 0; // Numerical Recipes' generator
        const phase = (row + (1 + channel) * column) / side;
        pixels[at] = 128 + 80 * Math.sin(2 * Math.PI * waves * phase + index) + (noise >>> 27);
      }
  return pixels;
};

/**
 * Creates a folder of 256 × 256 JPEGs in ten classes.
 *
 * @param count Number of training images; `count / 10` test images are created in addition.
 */
export const makeImages = async (folder: string, count: number): Promise<void> => {
  const parts = [
    ["train", count],
    ["test", Math.ceil(count / 10)],
  ] as const;
  for (const [part, images] of parts)
    for (let i = 0; i < images; i++) {
      const place = join(folder, part, `class-${i % classes}`);
      mkdirSync(place, { recursive: true });
      const image = sharp(pixelsOf(i), { raw: { width: side, height: side, channels: 3 } });
      writeFileSync(join(place, `${i}.jpg`), await image.jpeg({ quality: 90 }).toBuffer());
    }
};

import fc from "fast-check";
import { expect, test } from "vitest";
import { augmentationKey, augmentImage, type Augmentation, type ImageSize, cropCenter } from "./augment.ts";
import { type ColourJitter, jitterColours } from "./colour-jitter.ts";

const keys = fc.tuple(fc.nat(), fc.nat(50), fc.nat(1000)).map((parts) => augmentationKey(...parts));
const images = (channels: number): fc.Arbitrary<Uint8Array> =>
  fc
    .array(fc.array(fc.nat(255), { minLength: channels, maxLength: channels }), { minLength: 1, maxLength: 30 })
    .map((pixels) => Uint8Array.from(pixels.flat()));
const most = fc.double({ min: 0.05, max: 2, noNaN: true });

const none: ColourJitter = { brightness: 0, contrast: 0, saturation: 0 };
const jittered = (image: Uint8Array, channels: number, jitter: ColourJitter, key: ArrayLike<number>): Uint8Array => {
  const copy = image.slice();
  jitterColours(copy, channels, jitter, key);
  return copy;
};

test("colors are scaled by one factor relative to a baseline, within the given range", () => {
  fc.assert(
    fc.property(
      images(3),
      keys,
      most,
      fc.constantFrom("brightness", "contrast", "saturation"),
      (image, key, x, name) => {
        const changed = jittered(image, 3, { ...none, [name]: x }, key);
        const grey = (i: number): number => {
          const at = i - (i % 3);
          return Math.floor(0.2989 * image[at]! + 0.587 * image[at + 1]! + 0.114 * image[at + 2]!);
        };
        const mean =
          Array.from({ length: image.length / 3 }, (_, i) => grey(3 * i)).reduce((a, b) => a + b) / (image.length / 3);
        const other = (i: number): number => ({ brightness: 0, contrast: mean, saturation: grey(i) })[name];
        // Each byte limits the range of the factor. The intersection of all ranges must contain an allowed factor.
        let [low, high] = [Math.max(0, 1 - x), 1 + x];
        for (const [i, byte] of image.entries()) {
          const [now, distance] = [changed[i]!, byte - other(i)];
          if (distance === 0 || now === 0 || now === 255) continue;
          const bounds = [(now - 0.5 - other(i)) / distance, (now + 0.5 - other(i)) / distance].toSorted(
            (a, b) => a - b,
          );
          [low, high] = [Math.max(low, bounds[0]! - 1e-9), Math.min(high, bounds[1]! + 1e-9)];
        }
        expect(low).toBeLessThanOrEqual(high);
      },
    ),
  );
});

test("colors are unchanged without jitter; gray has no saturation, and a uniform gray no contrast", () => {
  fc.assert(
    fc.property(images(3), images(1), fc.nat(255), keys, most, (image, grey, shade, key, x) => {
      expect(jittered(image, 3, none, key)).toEqual(image);
      expect(jittered(grey, 1, { ...none, saturation: x }, key)).toEqual(grey);
      const even = new Uint8Array(12).fill(shade);
      expect(jittered(even, 1, { ...none, contrast: x }, key)).toEqual(even);
    }),
  );
});

test("factors cover their whole range, and changes occur in every order", () => {
  const samples = Array.from({ length: 600 }, (_, i) => augmentationKey(5, 0, i));
  const bright = samples.map((key) => jittered(Uint8Array.of(100), 1, { ...none, brightness: 0.4 }, key)[0]!);
  expect(Math.min(...bright)).toBeLessThan(63);
  expect(Math.max(...bright)).toBeGreaterThan(136);
  expect(Math.abs(bright.reduce((sum, value) => sum + value) / 600 - 100)).toBeLessThan(4);
  // Clipping shows which change was applied first.
  const clipped = Uint8Array.of(250, 10, 10, 0, 0, 0);
  const strong = { brightness: 1e-9, contrast: 1e-9, saturation: 1e-9 };
  expect(
    samples.every((key) => jittered(clipped, 3, strong, key).every((byte, i) => Math.abs(byte - clipped[i]!) <= 3)),
  ).toBe(true);
});

test("each change draws separate random words: another change does not alter the first", () => {
  const size: ImageSize = [6, 7, 3];
  const source = Uint8Array.from({ length: 8 * 9 * 3 }, (_, i) => (i * 29) % 256);
  const shown = (augmentation: Augmentation, key: ArrayLike<number>): Uint8Array => {
    const target = new Uint8Array(6 * 7 * 3).fill(77);
    augmentImage(source, [8, 9, 3], target, size, augmentation, key);
    return target;
  };
  const mirrored = (image: Uint8Array): Uint8Array =>
    Uint8Array.from(image, (_, i) => image[i - (i % 21) + 3 * (6 - Math.floor((i % 21) / 3)) + (i % 3)]!);
  const plain: Augmentation = { cropPadding: 0, flip: false };
  const middle = new Uint8Array(6 * 7 * 3).fill(77);
  cropCenter(source, [8, 9, 3], middle, size);
  const jitter = { brightness: 0.4, contrast: 0.4, saturation: 0.4 };
  const resizedCrop = { scale: [0.2, 1], ratio: [0.7, 1.4] } as const;
  let numMirrored = 0;
  fc.assert(
    fc.property(keys, fc.nat(3), (key, cropPadding) => {
      expect(shown(plain, key)).toEqual(middle);
      const isMirrored = shown({ ...plain, flip: true }, key).some((byte, i) => byte !== middle[i]);
      if (isMirrored) numMirrored++;
      for (const where of [{ cropPadding }, { cropPadding: 0, resizedCrop }]) {
        const part = shown({ ...plain, ...where }, key);
        const flipped = shown({ ...plain, ...where, flip: true }, key);
        expect(flipped).toEqual(isMirrored ? mirrored(part) : part);
        expect(shown({ ...plain, ...where, flip: true, jitter }, key)).toEqual(jittered(flipped, 3, jitter, key));
      }
    }),
  );
  expect(numMirrored).toBeGreaterThan(20);
});

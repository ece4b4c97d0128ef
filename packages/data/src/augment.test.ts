import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { augmentationKey, augmentImage, cropCenter } from "./augment.ts";
import { augmentationWord } from "./random-draw.ts";

const sizes = fc.tuple(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 6 }), fc.constantFrom(1, 3));
const keys = fc.tuple(fc.nat(), fc.nat({ max: 50 }), fc.nat({ max: 1000 }));

/** Augments an image whose pixels are all different and not black. */
const changed = (
  size: readonly [number, number, number],
  augmentation: { readonly cropPadding: number; readonly flip: boolean },
  key: readonly [number, number, number],
): { readonly source: Uint8Array; readonly target: Uint8Array } => {
  const source = Uint8Array.from({ length: size[0] * size[1] * size[2] }, (_, i) => i + 1);
  const target = new Uint8Array(source.length).fill(77);
  augmentImage(source, size, target, size, augmentation, augmentationKey(...key));
  return { source, target };
};

describe("an augmented image", () => {
  test("is the image shifted by at most the padding, possibly mirrored, with black outside the image", () => {
    fc.assert(
      fc.property(sizes, fc.nat({ max: 3 }), fc.boolean(), keys, (size, cropPadding, flip, key) => {
        const [rows, columns, channels] = size;
        const { source, target } = changed(size, { cropPadding, flip }, key);
        const shown = (down: number, right: number, isMirrored: boolean): number[] =>
          Array.from(target, (_, i) => {
            const [channel, column, row] = [
              i % channels,
              Math.floor(i / channels) % columns,
              Math.floor(i / channels / columns),
            ];
            const [y, x] = [row + down, (isMirrored ? columns - 1 - column : column) + right];
            return y < 0 || y >= rows || x < 0 || x >= columns ? 0 : source[(y * columns + x) * channels + channel]!;
          });
        const moves = Array.from({ length: 2 * cropPadding + 1 }, (_, i) => i - cropPadding);
        const all = moves.flatMap((down) =>
          moves.flatMap((right) =>
            (flip ? [false, true] : [false]).map((isMirrored) => shown(down, right, isMirrored)),
          ),
        );
        expect(all).toContainEqual([...target]);
      }),
    );
  });

  test("is deterministic per seed, epoch and sample, and all variants occur", () => {
    const of = (epoch: number, sample: number): string =>
      [...changed([3, 3, 1], { cropPadding: 1, flip: true }, [7, epoch, sample]).target].join();
    expect(of(2, 5)).toBe(of(2, 5));
    const ways = new Set(Array.from({ length: 400 }, (_, i) => of(i % 20, Math.floor(i / 20))));
    expect(ways.size).toBe(18); // nine shifts, each mirrored or not
  });

  test("is unchanged without augmentation", () => {
    const { source, target } = changed([4, 5, 3], { cropPadding: 0, flip: false }, [1, 2, 3]);
    expect(target).toEqual(source);
  });

  test("is cropped at the center if it is larger than the target", () => {
    const source = Uint8Array.from({ length: 4 * 5 }, (_, i) => i);
    const target = new Uint8Array(2 * 3);
    cropCenter(source, [4, 5, 1], target, [2, 3, 1]);
    expect([...target]).toEqual([6, 7, 8, 11, 12, 13]);
    const moved = new Uint8Array(6);
    augmentImage(source, [4, 5, 1], moved, [2, 3, 1], { cropPadding: 1, flip: false }, augmentationKey(1, 1, 1));
    const places = [0, 1, 2].flatMap((row) => [0, 1, 2].map((column) => 5 * row + column));
    const cuts = places.map((at) => [at, at + 1, at + 2, at + 5, at + 6, at + 7]);
    expect(cuts).toContainEqual([...moved]);
  });
});

test("each random word of a sample is used for a single decision", () => {
  const words = Object.values(augmentationWord);
  expect(new Set(words).size).toBe(words.length);
  expect(Math.max(...words)).toBe(augmentationWord.region);
});

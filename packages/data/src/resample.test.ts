import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { cropCenter } from "./augment.ts";
import { type Box, type Pixels, Resampler } from "./resample.ts";
import { type ResamplingFilter, resamplingFilters } from "./resampling-filters.ts";

interface Case {
  readonly filter: ResamplingFilter;
  readonly size: readonly [number, number];
  readonly box: readonly [left: number, top: number, right: number, bottom: number] | null;
  readonly pixels: string;
}

const cases = JSON.parse(
  readFileSync(join(import.meta.dirname, "../test/resample/expected.json"), "utf8"),
) as readonly Case[];

/** Returns the pseudo-random image of test/resample/make.py. */
const noise = (rows: number, columns: number): Pixels => {
  let state = 1;
  const bytes = Uint8Array.from({ length: rows * columns * 3 }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
    return state >>> 24;
  });
  return { bytes, rows, columns };
};

const resampler = new Resampler();

test.each(cases)("noise resized from $box to $size by $filter equals Pillow's result, bit by bit", (one) => {
  const { filter, size, box, pixels } = one;
  const part: Box | undefined = box === null ? undefined : { left: box[0], top: box[1], right: box[2], bottom: box[3] };
  expect(Buffer.from(resampler.resample(noise(23, 31), size, part, filter)).toString("base64")).toBe(pixels);
});

/** Reference implementation of resampling without intermediate rounding, one pixel at a time. */
const slowly = ({ bytes, rows, columns }: Pixels, [high, wide]: readonly [number, number]): number[] => {
  const along = (size: number, target: number, at: number, of: (from: number) => number): number => {
    const support = Math.max(1, size / target);
    const centre = ((at + 0.5) * size) / target;
    let [sum, weights] = [0, 0];
    for (let from = 0; from < size; from++) {
      const weight = Math.max(0, 1 - Math.abs(from + 0.5 - centre) / support);
      sum += weight * of(from);
      weights += weight;
    }
    return sum / weights;
  };
  return Array.from({ length: high * wide * 3 }, (_, i) => {
    const [row, column, channel] = [Math.floor(i / 3 / wide), Math.floor(i / 3) % wide, i % 3];
    return along(rows, high, row, (down) =>
      along(columns, wide, column, (across) => bytes[(down * columns + across) * 3 + channel]!),
    );
  });
};

test("is a weighted mean, whatever the previous contents of the memory", () => {
  const side = fc.integer({ min: 1, max: 20 });
  fc.assert(
    fc.property(side, side, side, side, (rows, columns, high, wide) => {
      const image = noise(rows, columns);
      const found = resampler.resample(image, [high, wide]);
      const wanted = slowly(image, [high, wide]);
      expect(found).toHaveLength(wanted.length);
      // two roundings to bytes, one for rows and one for columns
      expect(wanted.every((value, i) => Math.abs(value - found[i]!) <= 1.001)).toBe(true);
    }),
    { numRuns: 60 },
  );
});

test("computes the center of a result as in the whole result, also for an image one pixel high", () => {
  const side = fc.integer({ min: 1, max: 20 });
  fc.assert(
    fc.property(
      side,
      side,
      fc.tuple(side, side),
      fc.tuple(side, side),
      fc.constantFrom(...resamplingFilters),
      (...one) => {
        const [rows, columns, size, [high, wide], filter] = one;
        const image = noise(rows, columns);
        const shown = [Math.min(high, size[0]), Math.min(wide, size[1])] as const;
        const whole = Uint8Array.from(resampler.resample(image, size, undefined, filter));
        const wanted = new Uint8Array(shown[0] * shown[1] * 3);
        cropCenter(whole, [...size, 3], wanted, [...shown, 3]);
        expect(Uint8Array.from(resampler.resample(image, size, undefined, filter, shown))).toEqual(wanted);
      },
    ),
  );
  // The complete result would have 13 GB.
  const thread = resampler.resample(noise(1, 65_000), [256, 256 * 65_000], undefined, "bicubic", [256, 256]);
  expect(thread).toHaveLength(256 * 256 * 3);
});

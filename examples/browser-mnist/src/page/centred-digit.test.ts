import fc from "fast-check";
import { expect, test } from "vitest";
import { centredDigit, type Ink, side } from "./centred-digit.ts";

/** Returns a drawing with a filled rectangle on an empty canvas. */
const rectangle = (size: number, { x, y, wide, high }: { x: number; y: number; wide: number; high: number }): Ink => {
  const strengths = new Uint8Array(size * size);
  for (let row = y; row < y + high; row++) strengths.fill(255, row * size + x, row * size + x + wide);
  return { strengths, width: size, height: size };
};

const shape = (digit: Uint8Array) => {
  const inked = Array.from(digit, (strength, i) => ({
    strength,
    x: (i % side) + 0.5,
    y: Math.floor(i / side) + 0.5,
  })).filter(({ strength }) => strength > 0);
  const mass = inked.reduce((sum, { strength }) => sum + strength, 0);
  const mean = (of: (pixel: (typeof inked)[number]) => number): number =>
    inked.reduce((sum, pixel) => sum + pixel.strength * of(pixel), 0) / mass;
  const extent = (of: (pixel: (typeof inked)[number]) => number): number =>
    Math.max(...inked.map(of)) - Math.min(...inked.map(of)) + 1;
  return { x: mean(({ x }) => x), y: mean(({ y }) => y), wide: extent(({ x }) => x), high: extent(({ y }) => y), mass };
};

const rectangles = fc
  .record({ wide: fc.integer({ min: 4, max: 90 }), high: fc.integer({ min: 4, max: 90 }) })
  .chain(({ wide, high }) =>
    fc.record({
      wide: fc.constant(wide),
      high: fc.constant(high),
      x: fc.integer({ min: 0, max: 100 - wide }),
      y: fc.integer({ min: 0, max: 100 - high }),
    }),
  );

test("centers a drawing in a box of 20 × 20 with its proportions, for any position and size", () => {
  fc.assert(
    fc.property(rectangles, (drawn) => {
      const digit = centredDigit(rectangle(100, drawn))!;
      const { x, y, wide, high, mass } = shape(digit);
      expect(Math.abs(x - 14)).toBeLessThan(0.1);
      expect(Math.abs(y - 14)).toBeLessThan(0.1);
      const scale = 20 / Math.max(drawn.wide, drawn.high);
      // Each edge of the rectangle may be within a pixel.
      expect(Math.abs(wide - drawn.wide * scale)).toBeLessThanOrEqual(2);
      expect(Math.abs(high - drawn.high * scale)).toBeLessThanOrEqual(2);
      // Averaging preserves the total ink, the area of the rectangle, up to rounding of each pixel.
      expect(Math.abs(mass / 255 - drawn.wide * drawn.high * scale ** 2)).toBeLessThan(2);
      const elsewhere = centredDigit(rectangle(100, { ...drawn, x: 0, y: 0 }))!;
      expect(Math.max(...Array.from(digit, (strength, i) => Math.abs(strength - elsewhere[i]!)))).toBeLessThanOrEqual(
        1,
      );
    }),
  );
});

test("centers an asymmetric drawing by its mass as far as all of it stays in the image", () => {
  // A hook shape: most of the ink is in the left stroke, and the foot extends far to the right.
  const strengths = new Uint8Array(40 * 40);
  for (let row = 0; row < 40; row++) strengths.fill(255, row * 40, row * 40 + 8);
  for (let row = 36; row < 40; row++) strengths.fill(255, row * 40, row * 40 + 40);
  const { x, y, wide, high, mass } = shape(centredDigit({ strengths, width: 40, height: 40 })!);
  expect([wide, Math.round(mass / 255)]).toEqual([20, (40 * 8 + 4 * 32) / 4]);
  expect(high).toBeLessThanOrEqual(21);
  expect(Math.abs(y - 14)).toBeLessThan(0.5);
  expect(x).toBeLessThan(14); // the foot ends at the edge
});

test("returns undefined for an empty drawing", () => {
  expect(centredDigit({ strengths: new Uint8Array(16), width: 4, height: 4 })).toBeUndefined();
});

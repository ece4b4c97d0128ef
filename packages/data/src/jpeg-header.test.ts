import { readFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { jpegHeader } from "./jpeg-header.ts";

const sample = (name: string): Uint8Array => readFileSync(join(import.meta.dirname, "../test/images", name));

test("parses size, kind and orientation from a header", () => {
  const plain = { rows: 16, columns: 24, components: 3, precision: 8, frame: 0xc0, orientation: 1 };
  expect(jpegHeader(sample("plain.jpg"))).toEqual(plain);
  expect(jpegHeader(sample("grey.jpg"))).toEqual({ ...plain, components: 1 });
  expect(jpegHeader(sample("cmyk.jpg"))).toEqual({ ...plain, components: 4 });
  expect(jpegHeader(sample("turned.jpg"))).toEqual({ ...plain, rows: 24, columns: 16, orientation: 6 });
  expect(jpegHeader(sample("plain.png"))).toBeUndefined();
});

test("a damaged header gives valid fields or none, and is not read beyond its end", () => {
  const bytes = sample("turned.jpg");
  const header = fc.record({
    end: fc.integer({ min: 0, max: bytes.length }),
    changes: fc.array(fc.tuple(fc.nat(250), fc.nat(255)), { maxLength: 6 }),
  });
  fc.assert(
    fc.property(header, ({ end, changes }) => {
      // Copies the beginning of the file into a buffer of the same length.
      const damaged = Uint8Array.from(bytes.subarray(0, end));
      for (const [at, value] of changes) if (at < damaged.length) damaged[at] = value;
      const found = jpegHeader(damaged);
      if (found === undefined) return;
      expect(found.orientation).toBeGreaterThanOrEqual(1);
      expect(found.orientation).toBeLessThanOrEqual(8);
      expect(Object.values(found).every((value) => value !== undefined)).toBe(true);
    }),
    { numRuns: 300 },
  );
});

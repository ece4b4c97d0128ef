import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { fromBf16Bits, fromF16Bits, roundToStorage, toBf16Bits, toF16Bits } from "./dtype.ts";

const allHalves = Array.from({ length: 65536 }, (_, bits) => bits);

describe("16-bit storage", () => {
  test("every f16 bit pattern survives decode and encode", () => {
    for (const bits of allHalves) {
      const value = fromF16Bits(bits);
      if (Number.isNaN(value)) expect(Number.isNaN(fromF16Bits(toF16Bits(value)))).toBe(true);
      else expect(toF16Bits(value)).toBe(bits);
    }
  });

  test("every bf16 bit pattern survives decode and encode", () => {
    for (const bits of allHalves) {
      const value = fromBf16Bits(bits);
      if (Number.isNaN(value)) expect(Number.isNaN(fromBf16Bits(toBf16Bits(value)))).toBe(true);
      else expect(toBf16Bits(value)).toBe(bits);
    }
  });

  test("f16 rounding agrees with the platform's Float16Array", () => {
    const platform = new Float16Array(1);
    fc.assert(
      fc.property(fc.float({ noNaN: true }), (value) => {
        platform[0] = value;
        expect(fromF16Bits(toF16Bits(value))).toBe(platform[0]);
      }),
      { numRuns: 5000 },
    );
  });

  test("bf16 rounds to the nearest neighbour, ties to even", () => {
    expect(fromBf16Bits(toBf16Bits(1 + 2 ** -8))).toBe(1);
    expect(fromBf16Bits(toBf16Bits(1 + 3 * 2 ** -8))).toBe(1 + 2 ** -6);
    expect(fromBf16Bits(toBf16Bits(3.4e38))).toBe(Infinity);
  });
});

test("integers wrap and bools collapse", () => {
  expect(roundToStorage(2 ** 31, "i32")).toBe(-(2 ** 31));
  expect(roundToStorage(-1, "u32")).toBe(2 ** 32 - 1);
  expect(roundToStorage(257, "u8")).toBe(1);
  expect(roundToStorage(-3, "bool")).toBe(1);
});

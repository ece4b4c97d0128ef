import fc from "fast-check";
import { expect, test } from "vitest";
import { bytesText, digitsText, millisecondsText, rateText, secondsText, shareText } from "./quantities.ts";

test("formats three digits, in the largest unit with a value of at least 1", () => {
  expect([0, 1, 0.99951, 0.0123456, 999.96e-6, 5e-9, 2e-11, 12_345].map(secondsText)).toEqual([
    "0 s",
    "1.00 s",
    "1.00 s",
    "12.3 ms",
    "1.00 ms",
    "5.00 ns",
    "0.0200 ns",
    "12345 s",
  ]);
  expect([0.0123456, 1, 0].map(millisecondsText)).toEqual(["12.3 ms", "1.00e+3 ms", "0.00 ms"]);
  expect([0, 1, 1023, 1024, 1536, 2 ** 20 - 1, 2 ** 50].map(bytesText)).toEqual([
    "0 B",
    "1 B",
    "1023 B",
    "1.00 KiB",
    "1.50 KiB",
    "1.00 MiB",
    "1024 TiB",
  ]);
  expect([0, 999.9, 3.2e9].map((rate) => rateText(rate, "FLOP/s"))).toEqual([
    "0 FLOP/s",
    "1.00 kFLOP/s",
    "3.20 GFLOP/s",
  ]);
  expect([0, 0.1234, 0.0004, 0.9999, 1, 12].map(shareText)).toEqual([
    "0 %",
    "12.3 %",
    "0.0 %",
    "100 %",
    "100 %",
    "1200 %",
  ]);
  expect([undefined, 0, 0.012345, 1234.5, 1e-7].map((value) => digitsText(value))).toEqual([
    "–",
    "0",
    "0.0123",
    "1230",
    "1.0e-7",
  ]);
});

test("formats NaN and infinite values as a dash", () => {
  for (const write of [secondsText, bytesText, shareText, digitsText])
    expect([write(Number.NaN), write(Infinity)]).toEqual(["–", "–"]);
});

test("any time reads back to half of its third digit", () => {
  const sizes: Readonly<Record<string, number>> = { ns: 1e-9, µs: 1e-6, ms: 1e-3, s: 1 };
  fc.assert(
    fc.property(fc.double({ min: 1e-9, max: 1e6, noNaN: true }), (seconds) => {
      const [count, unit] = secondsText(seconds).split(" ");
      expect(Math.abs((Number(count) * sizes[unit!]!) / seconds - 1)).toBeLessThan(0.0051);
    }),
  );
});

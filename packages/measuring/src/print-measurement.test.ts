import { expect, test } from "vitest";
import { formatRate, measurementLine } from "./print-measurement.ts";

test("rates have a decimal prefix", () => {
  expect([2.5e9, 65_670_000, 1234, 999].map((rate) => formatRate(rate, "B"))).toEqual([
    "2.50 GB/s",
    "65.7 MB/s",
    "1.23 kB/s",
    "999 B/s",
  ]);
});

test("a line has the rate at the median, and times in one unit", () => {
  const measurement = { median: 0.5, mad: 0.0125, n: 21, best: 0.45 };
  expect(measurementLine("read", measurement, { amount: 1e6, unit: "B" }).replaceAll(/ +/g, " ")).toBe(
    "read 2.00 GB/s 500 ± 12.5 µs (best 450, 21 samples)",
  );
  expect(measurementLine("step", { ...measurement, median: 2000, mad: 10, best: 1990 }).replaceAll(/ +/g, " ")).toBe(
    "step 2.00 ± 0.0100 s (best 1.99, 21 samples)",
  );
});

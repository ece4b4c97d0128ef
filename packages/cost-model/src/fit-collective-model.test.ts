import { threefry2x32 } from "@skein/tensor-core/backend";
import { describe, expect, test } from "vitest";
import { mpiAllReduce, publishedLinks, publishedSizes } from "@skein/published-measurements";
import { fitCollectiveModel, fitPiecewiseCollectiveModel } from "./fit-collective-model.ts";
import { collectiveSeconds } from "./collective-model.ts";

const uniform = (stream: number, index: number): number => threefry2x32([7, stream], [index, 0])[0] / 2 ** 32;

describe.each(publishedLinks)("samples of $network, $worldSize ranks", ({ startupSeconds, secondsPerByte }) => {
  const exact = publishedSizes.map((bytes) => ({ bytes, seconds: startupSeconds + secondsPerByte * bytes }));

  test("give back a and b", () => {
    const fit = fitCollectiveModel(exact);
    expect(fit.startupSeconds / startupSeconds).toBeCloseTo(1, 6);
    expect(fit.secondsPerByte / secondsPerByte).toBeCloseTo(1, 6);
    expect(fit.numLeftOut).toBe(0);
  });

  test("still do with 2 % of noise, a third of outliers by a factor of ten, and some invalid samples", () => {
    const bad = (i: number): number => (uniform(1, i) > 1 / 3 ? 1 : i % 2 === 0 ? 10 : 0.1);
    const samples = exact.map(({ bytes, seconds }, i) => ({
      bytes,
      seconds: seconds * bad(i) * (1 + 0.04 * (uniform(0, i) - 0.5)),
    }));
    const good = publishedSizes.find((_, i) => bad(i) === 1)!;
    const noFigures = [Number.NaN, 0, -1, Infinity].map((seconds) => ({ bytes: good, seconds }));
    const fit = fitCollectiveModel([...samples, ...noFigures]);
    expect(fit.numLeftOut).toBe(4 + exact.filter((_, i) => bad(i) !== 1).length);
    expect(fit.worstRelativeError).toBeLessThan(0.1);
    for (const { bytes, seconds } of exact)
      expect(Math.abs(collectiveSeconds(fit, bytes) / seconds - 1)).toBeLessThan(0.03);
  });
});

test("repeated samples of a size count by their median", () => {
  const samples = [1000, 2000].flatMap((bytes) =>
    [1, 1, 50].map((factor) => ({ bytes, seconds: (1e-3 + bytes * 1e-6) * factor })),
  );
  const { startupSeconds, secondsPerByte } = fitCollectiveModel(samples);
  expect([startupSeconds, secondsPerByte].map((x) => x.toPrecision(6))).toEqual(["0.00100000", "0.00000100000"]);
});

test("one size is not enough", () => {
  const one = [1, 2, 3].map((seconds) => ({ bytes: 8, seconds }));
  expect(() => fitCollectiveModel(one)).toThrow("of one size");
  expect(() => fitPiecewiseCollectiveModel(one)).toThrow("of one size");
  expect(() => fitPiecewiseCollectiveModel(one, { noise: 0 })).toThrow("noise is 0");
});

describe("pieces", () => {
  test("one line stays one piece", () => {
    const samples = publishedSizes.map((bytes, i) => ({
      bytes,
      seconds: (1e-4 + bytes * 1e-9) * (1 + 0.1 * (uniform(2, i) - 0.5)),
    }));
    expect(fitPiecewiseCollectiveModel(samples).pieces).toHaveLength(1);
  });

  test("a piece begins at the size at which an MPI library changes its algorithm, and all sizes fit", () => {
    // As many small sizes as large sizes; with unequal numbers, a single line would fit only the more frequent sizes.
    const sizes = [4, 64, 512, 2048, 8192, 12_288, ...Array.from({ length: 7 }, (_, i) => 2 ** (14 + i)), 3 * 2 ** 18];
    const rows = mpiAllReduce[8].filter(([bytes]) => sizes.includes(bytes));
    const samples = rows.map(([bytes, microseconds]) => ({ bytes, seconds: microseconds * 1e-6 }));
    const model = fitPiecewiseCollectiveModel(samples);
    expect(model.pieces.map(({ fromBytes }) => fromBytes)).toContain(12_288);
    const errorOf = (of: Parameters<typeof collectiveSeconds>[0]): number =>
      Math.max(...samples.map(({ bytes, seconds }) => Math.abs(collectiveSeconds(of, bytes) / seconds - 1)));
    expect(errorOf(model)).toBeLessThan(0.35);
    // A single line is wrong by a factor of eight at some size, because small messages do not have the start-up time of
    // large messages.
    expect(errorOf(fitCollectiveModel(samples))).toBeGreaterThan(2);
    // Large messages: the published fit of this file over 16 KiB to 1 MiB is 831.5 µs + 3.336 ns per byte.
    expect(Math.abs(collectiveSeconds(model, 2 ** 19) / (831.5e-6 + 3.336e-9 * 2 ** 19) - 1)).toBeLessThan(0.15);
  });
});

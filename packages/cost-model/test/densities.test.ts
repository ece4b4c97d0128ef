import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { collectiveSeconds, timelineOf } from "../src/index.ts";
import { type LagsOptions, planLags } from "../src/planners.ts";
import { profileOf } from "./profiles.ts";
import { googLeNet } from "@skein/published-measurements";

const ethernet = {
  worldSize: 8,
  allReduce: { startupSeconds: 831.5e-6, secondsPerByte: 3.336e-9 },
  allGather: { startupSeconds: 415e-6, secondsPerByte: 1.668e-9 },
} satisfies LagsOptions;

const sparseSeconds = ({ worldSize, allGather }: typeof ethernet, bytes: number, density: number): number =>
  collectiveSeconds(allGather, 8 * worldSize * Math.max(1, Math.floor((density * bytes) / 4)));

describe("planLags", () => {
  const rows = planLags(googLeNet, ethernet);

  test("densities differ by layer, unlike those of the released function", () => {
    expect(rows.map(({ path }) => path)).toEqual(googLeNet.tensors.map(({ path }) => path));
    expect(new Set(rows.map(({ density }) => density)).size).toBeGreaterThan(10);
    expect(rows.at(-1)!.density).toBe(0.001);
  });

  test("each exchange is hidden by the next gradient's backward unless it has the minimum density; none could be denser", () => {
    for (const [i, { density }] of rows.entries()) {
      const { bytes } = googLeNet.tensors[i]!;
      const budget = googLeNet.tensors[i + 1]?.backwardSeconds ?? 0;
      const dense = collectiveSeconds(ethernet.allReduce, bytes);
      if (density === 1 && dense <= sparseSeconds(ethernet, bytes, 0.001)) continue; // sparse is not faster
      if (density > 0.001)
        expect(Math.min(sparseSeconds(ethernet, bytes, density), density === 1 ? dense : Infinity)).toBeLessThanOrEqual(
          budget,
        );
      // With one more entry, the exchange would take too long.
      if (density < 1)
        expect(Math.min(dense, sparseSeconds(ethernet, bytes, density + 4.01 / bytes))).toBeGreaterThan(budget);
    }
  });

  test("exposes no more than the minimum density does beyond the last exchange", () => {
    const replay = (densities: readonly number[]): number => {
      const sent = {
        tensors: googLeNet.tensors.map((tensor, i) => ({
          ...tensor,
          bytes:
            densities[i] === 1
              ? Math.min(collectiveSeconds(ethernet.allReduce, tensor.bytes), sparseSeconds(ethernet, tensor.bytes, 1))
              : sparseSeconds(ethernet, tensor.bytes, densities[i]!),
        })),
      };
      return timelineOf(
        sent,
        sent.tensors.map(({ path }) => [path]),
        { startupSeconds: 0, secondsPerByte: 1 },
      ).exposedSeconds;
    };
    const least = replay(rows.map(() => 0.001));
    expect(replay(rows.map(({ density }) => density))).toBeCloseTo(least, 9);
  });

  test("densities decrease with a, b and the cost of selection, and increase with backward", () => {
    const figures = fc.record({
      bytes: fc.integer({ min: 4, max: 4e6 }).map((n) => n - (n % 4)),
      startup: fc.double({ min: 0, max: 0.01, noNaN: true }),
      // At most a terabyte per second: for a smaller time per byte, rounding of the start-up would hide the time of one
      // byte.
      perByte: fc.double({ min: 1e-12, max: 1e-7, noNaN: true }),
      next: fc.double({ min: 0, max: 0.02, noNaN: true }),
      selection: fc.double({ min: 0, max: 0.01, noNaN: true }),
    });
    fc.assert(
      fc.property(figures, ({ bytes, startup, perByte, next, selection }) => {
        const density = (scale: { a?: number; b?: number; next?: number; selection?: number }): number => {
          const model = { startupSeconds: startup * (scale.a ?? 1), secondsPerByte: perByte * (scale.b ?? 1) };
          const profile = profileOf([
            { bytes, backwardSeconds: 0 },
            { bytes: 4, backwardSeconds: next * (scale.next ?? 1) },
          ]);
          const selectionSeconds = (): number => selection * (scale.selection ?? 1);
          return planLags(profile, { worldSize: 4, allReduce: model, allGather: model, selectionSeconds })[0]!.density;
        };
        const usual = density({});
        expect(usual).toBeGreaterThanOrEqual(0.001);
        expect(usual).toBeLessThanOrEqual(1);
        expect(density({ a: 2 })).toBeLessThanOrEqual(usual);
        expect(density({ b: 2 })).toBeLessThanOrEqual(usual);
        // The selection is so expensive that the dense exchange is faster: the density is 1, not the minimum.
        if (density({ selection: 2 }) > usual) expect([density({ selection: 2 }), usual]).toEqual([1, 0.001]);
        expect(density({ next: 2 })).toBeGreaterThanOrEqual(usual);
      }),
    );
  });

  test("equals the closed form for linear models: k = (t_b − t_select − a) / (8 · P · b)", () => {
    const profile = profileOf([
      { bytes: 4000, backwardSeconds: 0 },
      { bytes: 4, backwardSeconds: 0.65 },
    ]);
    const [allReduce, allGather] = [
      { startupSeconds: 1, secondsPerByte: 0 },
      { startupSeconds: 0.11, secondsPerByte: 1e-3 },
    ];
    const density = (selectionSeconds: (numElements: number) => number): number =>
      planLags(profile, { worldSize: 4, allReduce, allGather, selectionSeconds })[0]!.density;
    // In 0.54 s 16.9 entries of 0.032 s can be sent; with 0.1 s of selection, 13.8 entries.
    expect(Math.floor(1000 * density(() => 0))).toBe(16);
    expect(Math.floor(1000 * density((numElements) => 1e-4 * numElements))).toBe(13);
    expect(density(() => 0.7)).toBe(0.001);
  });

  test("is dense if that takes no longer than the minimum density, although neither is hidden", () => {
    const density = (bytes: number, selection: number): number => {
      const profile = profileOf([{ bytes, backwardSeconds: 0 }]);
      return planLags(profile, { ...ethernet, allGather: ethernet.allReduce, selectionSeconds: () => selection })[0]!
        .density;
    };
    expect(density(40, 0)).toBe(1); // one entry per rank from 8 ranks is 64 bytes
    expect(density(4_000_000, 0)).toBe(0.001);
    expect(density(4_000_000, 1)).toBe(1);
  });

  test("a gradient on a single rank is dense, and its backward pass hides exchanges too", () => {
    const rows = [
      { bytes: 4000, backwardSeconds: 0 },
      { bytes: 4000, backwardSeconds: 0.3 },
      { bytes: 4000, backwardSeconds: 0.35 },
    ];
    const [allReduce, allGather] = [
      { startupSeconds: 1, secondsPerByte: 0 },
      { startupSeconds: 0.11, secondsPerByte: 1e-3 },
    ];
    const of = (worldSize: LagsOptions["worldSize"]): number[] =>
      planLags(profileOf(rows), { worldSize, allReduce, allGather }).map(({ density }) => Math.floor(1000 * density));
    // The first density is that of the closed form above with 0.65 s, the time until the next tensor that is sent.
    expect(of((path) => (path === "t1" ? 1 : 4))).toEqual([16, 1000, 1]);
    expect(of((path) => (path === "t0" ? 4 : 1))).toEqual([16, 1000, 1000]);
    // With two ranks, twice as many entries take the same time.
    expect(of((path) => (path === "t0" ? 2 : 1))).toEqual([33, 1000, 1000]);
    expect(() => of(() => 0)).toThrow("worldSize is 0");
  });

  test("rejects settings out of range", () => {
    expect(() => planLags(googLeNet, { ...ethernet, worldSize: 0 })).toThrow("worldSize is 0");
    expect(() => planLags(googLeNet, { ...ethernet, minDensity: 0 })).toThrow("minDensity is 0");
    expect(() => planLags(googLeNet, { ...ethernet, entryBytes: 0 })).toThrow("entryBytes is 0");
  });
});

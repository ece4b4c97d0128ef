import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { times } from "../../../test/moe-layers.ts";
import { models } from "../../../test/profiles.ts";
import {
  type DispatchChoice,
  type DispatchedLayer,
  type DispatchLinks,
  dispatchSeconds,
  type DispatchWay,
  type LayerComputing,
  rankDispatches,
} from "./dispatch-way.ts";

const ways: readonly DispatchWay[] = ["ragged", "dense", "duplicate-free", "hierarchical"];
const choices = ways.flatMap((way) => [1, 2, 4, 8].map((numChunks): DispatchChoice => ({ way, numChunks })));
const free = { startupSeconds: 0, secondsPerByte: 0 };
const idle: LayerComputing = { expertSeconds: 0, chunkSeconds: 0, otherSeconds: 0 };

/**
 * Layers of experts with one rank, one level or several levels, whose experts have too few slots, or many more slots
 * than needed.
 */
const layers: fc.Arbitrary<DispatchedLayer> = fc.record({
  numTokens: fc.integer({ min: 1, max: 64 }),
  width: fc.integer({ min: 1, max: 8 }),
  numExperts: fc.constantFrom(8, 16),
  expertsPerToken: fc.integer({ min: 1, max: 8 }),
  slots: fc.integer({ min: 1, max: 64 }),
});
const levelsOf = (sizes: readonly number[]) =>
  fc
    .array(models, { minLength: sizes.length, maxLength: sizes.length })
    .map((all) => sizes.map((size, i) => ({ size, model: all[i]! })));
const links: fc.Arbitrary<DispatchLinks> = fc
  .constantFrom<readonly number[]>([1], [2], [2, 2], [2, 4], [2, 2, 2])
  .chain((sizes) =>
    fc.record({
      numRanks: fc.constant(sizes.reduce((all, size) => all * size, 1)),
      flat: models,
      levels: sizes.length === 1 ? fc.constant([]) : levelsOf(sizes),
    }),
  );
const computings: fc.Arbitrary<LayerComputing> = fc.record({
  expertSeconds: times,
  chunkSeconds: fc.nat(12),
  otherSeconds: times,
});

describe("dispatchSeconds", () => {
  // Two hosts of two ranks; 8 tokens of 4 bytes, 2 of 4 experts per token, where each host has 2 experts and each rank
  // has 1.
  const layer = { numTokens: 8, width: 1, numExperts: 4, expertsPerToken: 2, slots: 8 };
  const line = (secondsPerByte: number, startupSeconds = 0) => ({ startupSeconds, secondsPerByte });
  const twoHosts: DispatchLinks = {
    numRanks: 4,
    flat: line(1),
    levels: [
      { size: 2, model: line(1) },
      { size: 2, model: line(0.5) },
    ],
  };
  const seconds = (way: DispatchWay, on = twoHosts, computing = idle): number =>
    dispatchSeconds({ way, numChunks: 1 }, layer, on, computing);

  test("computed by hand: traffic of a rank for each method, in both directions, forward and backward", () => {
    expect(seconds("dense")).toBe(2 * 2 * (4 * 8 * 4));
    expect(seconds("ragged")).toBe(2 * 2 * (16 * 4));
    // A row contains two extra numbers on the way to the experts, and none on the way back, over both levels.
    expect(seconds("hierarchical")).toBe(2 * (1 + 0.5) * 16 * (8 + 4));
    // A token is needed on one host with probability 1/3, and on both hosts with probability 2/3: 16 · 5/6 copies of 5
    // numbers to the experts and one number back; then 16 copies between two ranks.
    expect(seconds("duplicate-free")).toBeCloseTo(2 * (1 * (40 / 3) + 0.5 * 16) * (20 + 4), 9);
    expect(seconds("duplicate-free", { ...twoHosts, levels: [] })).toBeCloseTo(2 * 16 * (20 + 4), 9);
  });

  test("forward is a third of the computation; empty slots are computed too", () => {
    const alone = { ...twoHosts, flat: free, levels: [] };
    const computing = { expertSeconds: 30, chunkSeconds: 3, otherSeconds: 100 };
    expect(seconds("ragged", alone, computing)).toBeCloseTo(133);
    expect(seconds("dense", alone, computing)).toBeCloseTo(163);
  });

  test("backward with its own chunks recomputes a part of forward, and copies rows", () => {
    const alone = { ...twoHosts, flat: free, levels: [] };
    const computing = {
      expertSeconds: 30,
      chunkSeconds: 3,
      otherSeconds: 100,
      separateBackward: { recomputedShare: 0.5, copySeconds: 7 },
    };
    const took = (numChunks: number, backwardChunks: number): number =>
      dispatchSeconds({ way: "dense", numChunks, backwardChunks }, layer, alone, computing);
    // Of 60 s for 32 slots, a third is the forward pass, half of which is recomputed. The extra time per chunk is
    // divided in the same way.
    expect(took(1, 2)).toBeCloseTo(100 + (20 + 1) + (7 + 50 + 5));
    expect(took(2, 1)).toBeCloseTo(100 + (20 + 2) + (7 + 50 + 2.5));
    expect(took(2, 2)).toBeCloseTo(100 + (20 + 2) + (40 + 4));
    expect(() => dispatchSeconds({ way: "ragged", numChunks: 1, backwardChunks: 2 }, layer, alone, computing)).toThrow(
      /ragged has 1 chunks forward and 2 backward, but its rows would have to travel again/,
    );
  });

  test("passes are predicted separately: without recomputation, each takes its own time for its number of chunks", () => {
    const degree = fc.constantFrom(1, 2, 4, 8);
    fc.assert(
      fc.property(layers, links, computings, degree, degree, (any, on, computing, a, b) => {
        const took = (numChunks: number, backwardChunks: number, more = {}): number =>
          dispatchSeconds({ way: "dense", numChunks, backwardChunks }, any, on, { ...computing, ...more });
        expect(took(a, b) + took(b, a)).toBeCloseTo(took(a, a) + took(b, b), 6);
        const separateBackward = { recomputedShare: 0.5, copySeconds: 1 };
        expect(took(a, b, { separateBackward })).toBeGreaterThanOrEqual(took(a, b) + (a === b ? 0 : 1) - 1e-9);
      }),
    );
  });

  test("a level that contains all ranks has no effect", () => {
    fc.assert(
      fc.property(layers, models, computings, fc.constantFrom(...choices), (any, model, computing, choice) => {
        const numRanks = 4;
        const [none, one] = [[], [{ size: numRanks, model }]].map((levels) =>
          dispatchSeconds(choice, any, { numRanks, flat: model, levels }, computing),
        );
        expect(one).toBe(none);
      }),
    );
  });

  test("takes at least as long as its bottleneck, and without start-ups more chunks are never slower", () => {
    fc.assert(
      fc.property(layers, links, computings, fc.constantFrom(...ways), (any, on, computing, way) => {
        const noStart = (one: DispatchLinks["flat"]): DispatchLinks["flat"] => ({ ...one, startupSeconds: 0 });
        const steady = {
          ...on,
          flat: noStart(on.flat),
          levels: on.levels.map(({ size, model }) => ({ size, model: noStart(model) })),
        };
        const work = { ...computing, chunkSeconds: 0 };
        const bound = dispatchSeconds({ way, numChunks: 1 }, any, { ...on, flat: free, levels: [] }, work);
        let before = Infinity;
        for (const numChunks of [1, 2, 4, 8]) {
          const took = dispatchSeconds({ way, numChunks }, any, steady, work);
          expect(took).toBeGreaterThanOrEqual(bound - 1e-9);
          expect(took).toBeLessThanOrEqual(before * (1 + 1e-12));
          before = took;
        }
      }),
    );
  });

  test("rejects invalid sizes and times", () => {
    expect(() => seconds("ragged", { ...twoHosts, numRanks: 3 })).toThrow(
      /the levels have 2 × 2 = 4 ranks, but numRanks is 3/,
    );
    expect(() => dispatchSeconds({ way: "dense", numChunks: 0 }, layer, twoHosts, idle)).toThrow(/0 chunks/);
    expect(() => dispatchSeconds({ way: "dense", numChunks: 1 }, { ...layer, slots: 0.5 }, twoHosts, idle)).toThrow(
      /slots 0.5, but needs a whole number from 1/,
    );
    expect(() => seconds("dense", twoHosts, { ...idle, expertSeconds: -1 })).toThrow(/-1 s for experts/);
  });
});

describe("rankDispatches", () => {
  test("returns all choices, fastest first; equal ones by number of chunks, then in input order", () => {
    fc.assert(
      fc.property(layers, links, computings, (layer, on, computing) => {
        const ranked = rankDispatches(choices, layer, on, computing);
        expect(ranked).toHaveLength(choices.length);
        for (const [i, { seconds, way, numChunks }] of ranked.entries()) {
          expect(seconds).toBe(dispatchSeconds({ way, numChunks }, layer, on, computing));
          const next = ranked[i + 1];
          if (next === undefined) continue;
          const isEqual = next.seconds === seconds;
          expect(next.seconds).toBeGreaterThanOrEqual(seconds);
          if (isEqual) expect(next.numChunks).toBeGreaterThanOrEqual(numChunks);
          if (isEqual && next.numChunks === numChunks)
            expect(ways.indexOf(next.way)).toBeGreaterThan(ways.indexOf(way));
        }
      }),
    );
    const layer = { numTokens: 8, width: 1, numExperts: 4, expertsPerToken: 2, slots: 8 };
    expect(rankDispatches(choices, layer, { numRanks: 1, flat: free, levels: [] }, idle).slice(0, 2)).toEqual([
      { way: "ragged", numChunks: 1, seconds: 0 },
      { way: "dense", numChunks: 1, seconds: 0 },
    ]);
  });
});

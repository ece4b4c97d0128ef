import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { passes, times } from "../../../test/moe-layers.ts";
import { backwardOf, chunkSeconds } from "./layer-pass.ts";
import { layerTimeline } from "./layer-timeline.ts";
import { capacityMultiple, planPipeline } from "./pipeline-degree.ts";

test("every chunk pays all start-ups, and its part of bytes and work", () => {
  const model = { startupSeconds: 3, secondsPerByte: 2 };
  const pass = {
    allToAll: { model, bytes: 12 },
    allGather: { model, bytes: 24 },
    reduceScatter: { model, bytes: 36 },
    experts: { startupSeconds: 5, workSeconds: 40 },
  };
  expect(chunkSeconds(pass, 4)).toEqual({ allToAll: 9, allGather: 15, reduceScatter: 21, experts: 15 });
});

describe("planPipeline", () => {
  test("chooses the smallest simulated time over all degrees and orders, gradients included", () => {
    const chosen = new Set<string>();
    fc.assert(
      fc.property(
        passes,
        times,
        fc.uniqueArray(fc.integer({ min: 1, max: 8 }), { minLength: 1 }),
        (pass, t, degrees) => {
          const { numChunks, intraNodeOrder, seconds } = planPipeline(pass, t, { degrees });
          chosen.add(intraNodeOrder);
          const simulated = (r: number, order: typeof intraNodeOrder): number =>
            layerTimeline(chunkSeconds(pass, r), { numChunks: r, intraNodeOrder: order, gradientSeconds: t })
              .makespanSeconds;
          expect(simulated(numChunks, intraNodeOrder)).toBeCloseTo(seconds, 9);
          const all = degrees.flatMap((r) => [simulated(r, "gathers-first"), simulated(r, "alternating")]);
          expect(seconds).toBeCloseTo(Math.min(...all), 9);
        },
      ),
      { numRuns: 500 },
    );
    expect(chosen.size).toBe(2);
  });

  test("is not worse than one chunk, nor than each order alone", () => {
    fc.assert(
      fc.property(passes, times, (pass, gradientSeconds) => {
        const { seconds } = planPipeline(pass, gradientSeconds);
        expect(seconds).toBeLessThanOrEqual(planPipeline(pass, gradientSeconds, { degrees: [1] }).seconds);
        for (const order of ["gathers-first", "alternating"] as const)
          expect(seconds).toBeLessThanOrEqual(
            planPipeline(pass, gradientSeconds, { intraNodeOrders: [order] }).seconds,
          );
      }),
      { numRuns: 500 },
    );
  });

  test("if the network limits a layer, forward uses more chunks than backward with gradients", () => {
    const line = (startupSeconds: number, secondsPerByte: number) => ({ startupSeconds, secondsPerByte });
    const forward = {
      allToAll: { model: line(1, 1), bytes: 16 },
      allGather: { model: line(0, 1), bytes: 16 },
      reduceScatter: { model: line(0, 1), bytes: 16 },
      experts: { startupSeconds: 0, workSeconds: 16 },
    };
    // Computed by hand: 82 s with one chunk, 52 s with two, 44 s with four chunks in alternating order; with eight
    // chunks the all-to-alls alone take 16 · 3 s.
    const plans = [planPipeline(forward), planPipeline(backwardOf(forward), 100)] as const;
    expect(plans).toEqual([
      { numChunks: 4, intraNodeOrder: "alternating", seconds: 44 },
      { numChunks: 1, intraNodeOrder: "gathers-first", seconds: 2 * 17 + 100 },
    ]);
    expect(capacityMultiple(...plans)).toBe(4);
    expect(capacityMultiple({ ...plans[0], numChunks: 6 }, { ...plans[1], numChunks: 4 })).toBe(12);
  });

  test("the backward pass gathers the bytes that the forward pass scattered, and computes twice as much", () => {
    fc.assert(
      fc.property(passes, fc.integer({ min: 1, max: 8 }), (pass, r) => {
        const back = backwardOf(pass);
        expect(chunkSeconds(back, r).experts).toBe(2 * chunkSeconds(pass, r).experts);
        expect([back.allGather.bytes, back.reduceScatter.bytes]).toEqual([
          pass.reduceScatter.bytes,
          pass.allGather.bytes,
        ]);
        expect(backwardOf(back)).toEqual({ ...pass, experts: expect.anything() });
      }),
    );
  });

  test("rejects empty choices", () => {
    const nothing = { model: { startupSeconds: 0, secondsPerByte: 0 }, bytes: 0 };
    const pass = {
      allToAll: nothing,
      allGather: nothing,
      reduceScatter: nothing,
      experts: { startupSeconds: 0, workSeconds: 0 },
    };
    expect(() => planPipeline(pass, 0, { degrees: [] })).toThrow(/0 degrees and 2 orders/);
    expect(() => planPipeline(pass, 0, { degrees: [1.5] })).toThrow(/1.5 chunks/);
    expect(() => planPipeline(pass, -1)).toThrow(/-1 s for gradients/);
    expect(() => planPipeline({ ...pass, experts: { startupSeconds: 0, workSeconds: NaN } })).toThrow(
      /NaN s for the work of experts/,
    );
  });
});

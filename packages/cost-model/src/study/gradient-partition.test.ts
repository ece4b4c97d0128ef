import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { passes, times } from "../../test/moe-layers.ts";
import { models } from "../../test/profiles.ts";
import { type CollectiveModel, collectiveSeconds } from "../collective-model.ts";
import { type GradientLayer, type GradientPartition, planGradientPartition } from "./gradient-partition.ts";
import { chunkSeconds } from "../planners/moe/layer-pass.ts";
import { layerTimeline } from "../planners/moe/layer-timeline.ts";
import { planPipeline } from "../planners/moe/pipeline-degree.ts";

const someLayers = (most: number, bytes: fc.Arbitrary<number>): fc.Arbitrary<readonly GradientLayer[]> =>
  fc.array(fc.record({ experts: passes, denseSeconds: times, gradientBytes: bytes }), { maxLength: most });

const allReduceSeconds = (model: CollectiveModel, bytes: number): number =>
  bytes === 0 ? 0 : collectiveSeconds(model, bytes);

/**
 * Returns the gradient bytes of each time slot: for each layer, first during its experts, then during its dense part.
 */
const bytesByPlace = ({ layers }: GradientPartition): readonly number[] =>
  layers.flatMap(({ besideExpertsBytes, besideDenseBytes }) => [besideExpertsBytes, besideDenseBytes]);

const totalOf = (layers: readonly GradientLayer[]): number =>
  layers.reduce((sum, { gradientBytes }) => sum + gradientBytes, 0);

/**
 * Computes the seconds of the backward pass with the given bytes per time slot, if each layer uses its best number of
 * chunks.
 */
const secondsOf = (layers: readonly GradientLayer[], model: CollectiveModel, bytes: readonly number[]): number =>
  layers.reduce(
    (sum, { experts, denseSeconds }, i) =>
      sum +
      planPipeline(experts, allReduceSeconds(model, bytes[2 * i]!)).seconds +
      Math.max(denseSeconds, allReduceSeconds(model, bytes[2 * i + 1]!)),
    allReduceSeconds(
      model,
      bytes.reduce((rest, one) => rest - one, totalOf(layers)),
    ),
  );

/** Yields all assignments of whole bytes to time slots in which each byte is sent after it is ready. */
function* placements(layers: readonly GradientLayer[], slot = 0, sent = 0): Generator<readonly number[]> {
  if (slot === 2 * layers.length) {
    yield [];
    return;
  }
  const ready = totalOf(layers.slice(0, Math.floor(slot / 2)));
  for (let bytes = 0; bytes <= ready - sent; bytes++)
    for (const rest of placements(layers, slot + 1, sent + bytes)) yield [bytes, ...rest];
}

describe("planGradientPartition", () => {
  const layersOfBytes = someLayers(6, fc.oneof(fc.nat(20), fc.nat(3000)));

  test("assigns all bytes, each after the layer of its gradient", () => {
    fc.assert(
      fc.property(layersOfBytes, models, (layers, model) => {
        const plan = planGradientPartition(layers, model);
        const bytes = bytesByPlace(plan);
        expect(bytes.reduce((sum, one) => sum + one, plan.afterBytes)).toBe(totalOf(layers));
        expect(plan.afterBytes).toBeGreaterThanOrEqual(layers.at(-1)?.gradientBytes ?? 0);
        let sent = 0;
        for (const [slot, one] of bytes.entries()) {
          expect(Number.isInteger(one) && one >= 0).toBe(true);
          sent += one;
          expect(sent).toBeLessThanOrEqual(totalOf(layers.slice(0, Math.floor(slot / 2))));
        }
      }),
    );
  });

  test("predicts the time that its simulated pipelines take", () => {
    fc.assert(
      fc.property(layersOfBytes, models, (layers, model) => {
        const plan = planGradientPartition(layers, model);
        const simulated = plan.layers.map(({ besideExpertsBytes, besideDenseBytes, pipeline }, i) => {
          const { numChunks, intraNodeOrder } = pipeline;
          const gradientSeconds = allReduceSeconds(model, besideExpertsBytes);
          const { experts, denseSeconds } = layers[i]!;
          return (
            layerTimeline(chunkSeconds(experts, numChunks), { numChunks, intraNodeOrder, gradientSeconds })
              .makespanSeconds + Math.max(denseSeconds, allReduceSeconds(model, besideDenseBytes))
          );
        });
        const sum = simulated.reduce((all, one) => all + one, allReduceSeconds(model, plan.afterBytes));
        expect(plan.seconds).toBeCloseTo(sum, 6);
      }),
    );
  });

  test("is not worse than all bytes at the end, and not better than the network allows", () => {
    fc.assert(
      fc.property(layersOfBytes, models, (layers, model) => {
        const { seconds } = planGradientPartition(layers, model);
        const none = layers.flatMap(() => [0, 0]);
        expect(seconds).toBeLessThanOrEqual(secondsOf(layers, model, none) + 1e-6);
        const between = layers.reduce((sum, { experts }) => sum + 2 * chunkSeconds(experts, 1).allToAll, 0);
        expect(seconds).toBeGreaterThanOrEqual(between + allReduceSeconds(model, totalOf(layers)) - 1e-6);
      }),
    );
  });

  test("is the best of all assignments if a part is one byte", () => {
    // Sending a byte takes as long as an operation, so that layers use fewer chunks to send their gradients.
    const dearBytes = fc.record({ startupSeconds: fc.nat(40), secondsPerByte: fc.oneof(fc.nat(3), fc.nat(60)) });
    let numFewerChunks = 0;
    fc.assert(
      fc.property(someLayers(3, fc.nat(5)), dearBytes, (layers, model) => {
        const plan = planGradientPartition(layers, model, { numParts: Math.max(1, totalOf(layers)) });
        let best = Infinity;
        for (const bytes of placements(layers)) best = Math.min(best, secondsOf(layers, model, bytes));
        expect(plan.seconds).toBeCloseTo(best, 9);
        if (plan.layers.some(({ pipeline }, i) => pipeline.numChunks < planPipeline(layers[i]!.experts).numChunks))
          numFewerChunks++;
      }),
      { numRuns: 1000 },
    );
    expect(numFewerChunks).toBeGreaterThan(0);
  });

  test("more parts are not worse if they are a refinement", () => {
    fc.assert(
      fc.property(
        someLayers(
          5,
          fc.nat(3000).map((n) => 8 * n),
        ),
        models,
        fc.constantFrom(1, 2, 4),
        (layers, model, n) => {
          const few = planGradientPartition(layers, model, { numParts: n }).seconds;
          expect(planGradientPartition(layers, model, { numParts: 2 * n }).seconds).toBeLessThanOrEqual(few + 1e-6);
        },
      ),
    );
  });

  test("computed by hand: hidden bytes come first, then one layer takes all the rest, in a single chunk", () => {
    const line = (startupSeconds: number, secondsPerByte: number) => ({ startupSeconds, secondsPerByte });
    const experts = {
      allToAll: { model: line(5, 1), bytes: 16 },
      allGather: { model: line(0, 1), bytes: 16 },
      reduceScatter: { model: line(0, 1), bytes: 16 },
      experts: { startupSeconds: 0, workSeconds: 16 },
    };
    const layer = { experts, denseSeconds: 10, gradientBytes: 100 };
    const plan = planGradientPartition([layer, { ...layer, gradientBytes: 0 }], line(2, 1), { numParts: 1 });
    // Two chunks take 68 s, of which 52 s are all-to-alls; one chunk takes 90 s, of which 42 s are all-to-alls. So 14
    // bytes are hidden behind the experts, 8 behind the dense part. Sending the other 78 bytes at the end would take 2
    // + 78 s. Sending them together with the 14 bytes makes one chunk the better choice, and takes 68 s more than two
    // chunks did.
    expect(planPipeline(experts)).toEqual({ numChunks: 2, intraNodeOrder: "gathers-first", seconds: 68 });
    expect(plan.layers[1]).toEqual({
      besideExpertsBytes: 92,
      besideDenseBytes: 8,
      pipeline: { numChunks: 1, intraNodeOrder: "gathers-first", seconds: 2 * 21 + 2 + 92 },
      denseSeconds: 10,
    });
    expect(plan.afterBytes).toBe(0);
    expect(plan.seconds).toBe(68 + 10 + 136 + 10);
  });

  test("rejects invalid bytes and parts", () => {
    const nothing = { model: { startupSeconds: 0, secondsPerByte: 0 }, bytes: 0 };
    const experts = {
      allToAll: nothing,
      allGather: nothing,
      reduceScatter: nothing,
      experts: { startupSeconds: 0, workSeconds: 0 },
    };
    const layer = { experts, denseSeconds: 1, gradientBytes: 1.5 };
    expect(() => planGradientPartition([layer], nothing.model)).toThrow(/layer 0 has gradients of 1.5 bytes/);
    expect(() => planGradientPartition([], nothing.model, { numParts: 0 })).toThrow(
      /numParts of a gradient partition is 0/,
    );
    expect(() => planGradientPartition([{ ...layer, denseSeconds: -1 }], nothing.model)).toThrow(
      /-1 s for its dense part/,
    );
  });
});

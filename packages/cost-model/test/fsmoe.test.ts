import { type FsmoeLayerTimes, fsmoeLayerTimes, fsmoeTestbeds } from "@skein/published-measurements";
import { describe, expect, test } from "vitest";
import { backwardOf, chunkSeconds } from "../src/planners/moe/layer-pass.ts";
import { collectiveSeconds } from "../src/index.ts";
import { type IntraNodeOrder, planPipeline } from "../src/planners.ts";
import { correctedModel, passOf, publishedPass } from "./fsmoe-layers.ts";

const nameOf = ({ testbed, model, pass }: FsmoeLayerTimes): string => `${testbed}, ${model}, ${pass}`;

/** Returns, for a layer with one chunk, the predicted times divided by the measured times. */
const ratiosOf = (row: FsmoeLayerTimes) => {
  const forward = passOf(row.testbed, row.model);
  const predicted = chunkSeconds(row.pass === "forward" ? forward : backwardOf(forward), 1);
  return {
    allToAll: (1e3 * predicted.allToAll) / row.allToAll,
    allGather: (1e3 * predicted.allGather) / row.allGather,
    reduceScatter: (1e3 * predicted.reduceScatter) / row.reduceScatter,
    experts: (1e3 * predicted.experts) / row.experts,
  };
};

/** Returns the bytes of an all-reduce, derived from its measured time with the corrected fit. */
const allReducedBytes = ({ testbed, allReduce }: FsmoeLayerTimes): number => {
  const { startupSeconds, secondsPerByte } = correctedModel(testbed, "allReduce");
  return (allReduce * 1e-3 - startupSeconds) / secondsPerByte;
};

describe("the published times of a layer, from the published fits", () => {
  test.each(fsmoeLayerTimes)("$testbed, $model, $pass: all-to-all within 20 %", (row) => {
    const { allToAll } = ratiosOf(row);
    expect(allToAll).toBeGreaterThan(0.8);
    expect(allToAll).toBeLessThan(1.06);
  });

  // With the exponents as printed, the all-gathers of testbed A would take a hundred times as long, and its
  // reduce-scatters ten times as long.
  test.each(fsmoeLayerTimes)("$testbed, $model, $pass: all-gather within 19 %, reduce-scatter within 4", (row) => {
    const { allGather, reduceScatter } = ratiosOf(row);
    expect(Math.abs(allGather - 1)).toBeLessThan(row.testbed === "A" ? 0.19 : 0.04);
    expect(Math.abs(reduceScatter - 1)).toBeLessThan(0.04);
  });

  test("all-reduces of a model have nearly equal bytes on both testbeds: within 26 % and 2", () => {
    const [bytesOnA, bytesOnB] = (["A", "B"] as const).map((testbed) =>
      fsmoeLayerTimes.filter((row) => row.testbed === testbed && row.allReduce > 0).map(allReducedBytes),
    );
    const ratios = bytesOnA!.map((bytes, i) => bytesOnB![i]! / bytes);
    expect(ratios).toHaveLength(2);
    expect(ratios[0]).toBeCloseTo(1.26, 2);
    expect(ratios[1]).toBeCloseTo(1.02, 2);
    // The bytes measured on testbed B predict the times on testbed A: 6.5 ms for a measured 5.26 ms, 27.0 ms for 26.45
    // ms.
    const predicted = bytesOnB!.map((bytes) => 1e3 * collectiveSeconds(correctedModel("A", "allReduce"), bytes));
    expect(predicted[0]).toBeCloseTo(6.48, 1);
    expect(predicted[1]).toBeCloseTo(26.97, 1);
  });

  test("the fit of products is too slow for the measured experts, by a third to a half, once by a factor of 2.5", () => {
    for (const row of fsmoeLayerTimes) {
      const { experts } = ratiosOf(row);
      // The reason is unknown: the published times of this model on testbed A imply half of the multiply-adds that the
      // times on testbed B imply.
      const isOdd = row.testbed === "A" && row.model === "Mixtral-7B";
      expect(experts, nameOf(row)).toBeGreaterThan(isOdd ? 2.4 : 1.25);
      expect(experts, nameOf(row)).toBeLessThan(isOdd ? 2.6 : 1.6);
    }
  });

  test("in backward, experts take twice as long, within 6 %, and collectives equally long, within 9", () => {
    for (const [i, forward] of fsmoeLayerTimes.entries()) {
      if (forward.pass === "backward") continue;
      const backward = fsmoeLayerTimes[i + 1]!;
      expect([backward.pass, backward.model, backward.testbed]).toEqual(["backward", forward.model, forward.testbed]);
      expect(Math.abs(backward.experts / forward.experts / 2 - 1)).toBeLessThan(0.06);
      for (const collective of ["allToAll", "allGather", "reduceScatter"] as const)
        expect(Math.abs(backward[collective] / forward[collective] - 1)).toBeLessThan(0.09);
    }
  });
});

describe("the published grid of layers on testbed B", () => {
  // The number of heads also varies, but does not affect the experts, so 486 of the 1458 layers differ. The paper does
  // not print the capacity without drops; it is assumed to be 1. Its two types of experts have two and three products.
  const grid = [1, 2, 4].flatMap((batch) =>
    [256, 512, 1024].flatMap((length) =>
      [1024, 2048, 4096].flatMap((hidden) =>
        [2, 3, 4].flatMap((widening) =>
          [1.2, 2.4, 1].flatMap((capacityFactor) =>
            [2, 3].map((numProducts) => ({
              numTokens: batch * length,
              expertsPerToken: 2,
              capacityFactor,
              hidden,
              expertHidden: widening * hidden,
              numProducts,
            })),
          ),
        ),
      ),
    ),
  );
  const degrees = Array.from({ length: 32 }, (_, i) => i + 1);
  const shareThatDiffers = (intraNodeOrders: readonly IntraNodeOrder[]): number => {
    const differing = grid.filter((sizes) => {
      const forward = publishedPass("B", sizes);
      const choices = { degrees, intraNodeOrders };
      return planPipeline(forward, 0, choices).numChunks !== planPipeline(backwardOf(forward), 0, choices).numChunks;
    });
    return differing.length / grid.length;
  };

  test("forward and backward prefer different numbers of chunks on 912 of 1458, 63 %; here on 54 % and 63", () => {
    expect(grid).toHaveLength(486);
    expect(fsmoeTestbeds.B.gpusPerNode * 8).toBe(32);
    expect(shareThatDiffers(["gathers-first"])).toBeCloseTo(0.543, 2);
    expect(shareThatDiffers(["gathers-first", "alternating"])).toBeCloseTo(912 / 1458, 1);
  });
});

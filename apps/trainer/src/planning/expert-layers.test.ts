import { planIdleBuckets } from "@skein/cost-model/planners";
import type { Span } from "@skein/tensor-core";
import { expect, test } from "vitest";
import {
  type ExpertLayerTimes,
  expertLayersOf,
  layerNumbers,
  layersFrom,
  medianLayers,
  stretchesOf,
} from "./expert-layers.ts";

const collective = (scope: string, [startSeconds, endSeconds]: readonly [number, number], axis = "expert"): Span => ({
  name: `all-to-all ${scope}`,
  track: "collectives",
  startSeconds,
  endSeconds,
  args: { operator: "all-to-all", scope, bytes: 100, axis },
});
const kernel = (startSeconds: number, endSeconds: number, scope = "block-1/experts/experts/backward"): Span => ({
  name: `matmul ${scope}`,
  track: "compute",
  startSeconds,
  endSeconds,
  args: { operator: "matmul", scope },
});

test("finds the expert layers of a backward pass, what they send and the work between", () => {
  const spans: readonly Span[] = [
    collective("block-0/experts/dispatch", [1, 2]), // forward pass
    collective("block-0/experts/combine", [2, 3]),
    kernel(10, 11, "block-1/attention/backward"),
    collective("block-1/experts/combine/backward", [12, 13]),
    collective("block-1/experts/combine/backward", [12, 14]),
    kernel(13, 15),
    kernel(15, 18),
    collective("block-1/experts/dispatch/backward", [15, 17]),
    collective("block-1/experts/dispatch/backward", [18, 20]),
    kernel(21, 22, "block-0/attention/backward"),
    // A layer with its own number of backward chunks, over two levels.
    collective("block-0/experts/backward/combine/backward", [23, 24], "hosts"),
    collective("block-0/experts/backward/combine/backward", [24, 25], "inside"),
    kernel(25, 26),
    collective("block-0/experts/backward/backward/dispatch/backward", [26, 27], "inside"),
    collective("exchange-0", [13, 30]),
  ];
  expect(expertLayersOf(spans, 10)).toEqual([
    { beginSeconds: 2, endSeconds: 10, computeSeconds: 5, exchangedBytes: 200, numChunks: 2 },
    { beginSeconds: 13, endSeconds: 17, computeSeconds: 1, exchangedBytes: 100, numChunks: 1 },
  ]);
  expect(expertLayersOf([kernel(1, 2), collective("exchange-0", [1, 2])], 0)).toEqual([]);
});

const layers: readonly ExpertLayerTimes[] = [
  { beginSeconds: 2, endSeconds: 10, computeSeconds: 5, exchangedBytes: 200, numChunks: 2 },
  { beginSeconds: 13, endSeconds: 17, computeSeconds: 1, exchangedBytes: 100, numChunks: 1 },
];

test("over several steps each value is the median, and ranks can agree on them as numbers", () => {
  const later = layers.map((layer) => ({ ...layer, endSeconds: layer.endSeconds + 1 }));
  const latest = layers.map((layer) => ({ ...layer, endSeconds: layer.endSeconds + 9, computeSeconds: 0 }));
  expect(medianLayers([later, latest, layers])).toEqual(later);
  expect(layersFrom(layerNumbers(layers))).toEqual(layers);
  expect(medianLayers([[], []])).toEqual([]);
  expect(() => medianLayers([layers, []])).toThrow(/2 and 0 layers of experts/);
});

test("a backward pass is expert layers and the work between, each with the gradients ready when it begins", () => {
  const ready = [1, 2, 10, 18, 20];
  const profile = {
    tensors: ready.map((at, i) => ({ path: `t${i}`, bytes: 1, backwardSeconds: at - (ready[i - 1] ?? 0) })),
  };
  const allToAll = { startupSeconds: 0, secondsPerByte: 0.01 };
  const stretches = stretchesOf(layers, profile, allToAll);
  expect(stretches.map(({ numReady, ...own }) => [numReady, "denseSeconds" in own ? own.denseSeconds : own.numChunks]))
    // The gradients of a layer's own parameters become ready after the layer.
    .toEqual([
      [0, 2],
      [2, 2],
      [3, 3],
      [3, 1],
      [3, 3],
    ]);
  // Each of two chunks of 200 bytes in total takes a second. Of the 5 s of experts, 3 s do not overlap with another
  // all-to-all.
  const { backwardSeconds } = planIdleBuckets(profile, stretches, allToAll);
  expect(backwardSeconds).toBeCloseTo(2 + (1 + 5 + 1) + 3 + (1 + 1 + 1) + 3, 9);
});

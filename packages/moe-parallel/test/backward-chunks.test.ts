import { createCpuBackend } from "@skein/cpu-kernels";
import {
  evaluate,
  flattenTree,
  type Graph,
  NdArray,
  referenceBackend,
  sum,
  square,
  type Tensor,
  trace,
  valueAndGrad,
} from "@skein/tensor-core";
import { nodeCost, optimize } from "@skein/tensor-core/backend";
import { examples, firstDifference } from "@skein/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  byProbability,
  capacityByFactor,
  denseDispatcher,
  duplicateFreeDispatcher,
  type Experts,
  type Gate,
  geluExperts,
  hierarchicalDispatcher,
  moeLayer,
  raggedDispatcher,
  softGate,
  swigluExperts,
  switchGate,
} from "../src/index.ts";
import { layerOf, type Options } from "./layers.ts";
import { initRanks, type RankTokens, type StepResult, stepOnRanks } from "./step.ts";
import { keyOf, tokensOf, width } from "./tokens.ts";
import { partsOf } from "./world.ts";

// Two ranks with two experts each: rows of a chunk are ordered by expert, by rank and by slot.
const [numExperts, numRanks, numTokens] = [4, 2, 5];
const gates: readonly Gate[] = [
  switchGate({ width, numExperts, numChoices: 3 }) as Gate,
  softGate({ width, numExperts, slots: 3 }) as Gate,
];

const expectClose = (actual: NdArray, expected: NdArray): void => {
  const numbers = expected.toNumbers();
  const greatest = numbers.reduce((most, value) => Math.max(most, Math.abs(value)), 1);
  expect(firstDifference(actual.toNumbers(), numbers, { absolute: 2e-5 * greatest, relative: 0 })).toBeUndefined();
};

const ranks = fc.tuple(tokensOf(numRanks * numTokens), tokensOf(numRanks * numTokens)).map(([x, cotangent]) => {
  const cotangents = partsOf(cotangent, numRanks);
  return partsOf(x, numRanks).map((own, rank): RankTokens => [own, cotangents[rank]!, keyOf(rank)]);
});

test("separate backward chunks change no bit of the output, and gradients only by rounding", () => {
  const step = (options: Partial<Options>, own: readonly RankTokens[]): StepResult[] => {
    const layer = layerOf(options as Options);
    return stepOnRanks(() => layer, initRanks(layer, numRanks), own);
  };
  const numbers = fc.constantFrom(1, 2, 3, 4, 100);
  fc.assert(
    fc.property(
      ranks,
      fc.constantFrom(...gates),
      fc.constantFrom(0.5, 1, 4),
      fc.tuple(numbers, numbers).filter(([chunks, backwardChunks]) => chunks !== backwardChunks),
      (own, gate, factor, [chunks, backwardChunks]) => {
        const options = { gate, capacity: capacityByFactor({ factor, dropOrder: byProbability }) };
        const reference = step({ ...options, chunks }, own);
        step({ ...options, chunks, backwardChunks }, own).forEach((result, rank) => {
          const expected = reference[rank]!;
          expect(result.y.toNumbers()).toEqual(expected.y.toNumbers());
          expectClose(result.xGradient, expected.xGradient);
          for (const part of ["gate", "experts"] as const)
            for (const [name, gradient] of Object.entries(expected.gradients[part]))
              expectClose(result.gradients[part][name]!, gradient);
        });
      },
    ),
    { numRuns: examples(25, 300) },
  );
});

describe("on a traced graph", () => {
  const [wide, hidden, tokens] = [4, 6, 16];
  /** Returns the graph for loss and gradients on four ranks, as passed to a backend. */
  const graphOf = (experts: Experts, chunks: number, backwardChunks: number): Graph => {
    const layer = moeLayer<unknown, unknown, unknown>({
      gate: switchGate({ width: wide, numExperts: 8, numChoices: 2 }) as Gate,
      experts,
      chunks,
      backwardChunks,
      tokenAxes: [],
    });
    const step = (key: Tensor, x: Tensor): unknown => {
      const { params, state } = layer.init(key);
      return valueAndGrad(([own, ownX]: readonly [unknown, Tensor]) =>
        sum(square(layer.apply(own as typeof params, state, ownX, { train: true })[0])),
      )([params, x]);
    };
    const x = NdArray.from(new Array(tokens * wide).fill(1), [tokens, wide]);
    return optimize(trace(step as never, [keyOf(1), x], { mesh: { expert: 4 } }).graph, { fuse: false });
  };
  const exchanges = ({ nodes }: Graph, phase: string): number[] =>
    nodes
      .filter((node) => node.params["collective"] === "all-to-all" && node.op === "collective-start")
      .filter((node) => node.phase === phase)
      .map(({ specs }) => specs[0]!.shape.reduce((product, size) => product * size, 1));
  const products = (graph: Graph): number =>
    graph.nodes
      .filter(({ op }) => op.startsWith("grouped-matmul"))
      .reduce((flops, node) => flops + nodeCost(graph, node).flops, 0);
  // Slots of all experts: 2·16/8 choices on average times 1.25, for eight experts; each rank receives that many rows.
  const numRows = 8 * Math.ceil((1.25 * 2 * tokens) / 8);

  test.each([
    [1, 3],
    [3, 1],
    [2, 5],
    [5, 2],
  ])("forward sends %i chunks and backward %i, and nothing is sent twice", (chunks, backwardChunks) => {
    const graph = graphOf(geluExperts({ width: wide, hidden }) as Experts, chunks, backwardChunks);
    for (const [phase, count] of [
      ["forward", chunks],
      ["backward", backwardChunks],
    ] as const) {
      const sent = exchanges(graph, phase);
      expect(sent).toHaveLength(2 * count);
      expect(sent.reduce((total, numbers) => total + numbers, 0)).toBe(2 * numRows * wide);
    }
  });

  test.each([
    ["gelu", geluExperts({ width: wide, hidden }) as Experts, 1],
    ["swiglu", swigluExperts({ width: wide, hidden }) as Experts, 2],
  ] as const)("computes the inside of %s experts again, not what they return", (_name, experts, again) => {
    const more = products(graphOf(experts, 2, 3)) - products(graphOf(experts, 2, 2));
    expect(more).toBe(again * 2 * numRows * wide * hidden);
    // More chunks than slots are limited to the number of slots.
    expect(products(graphOf(experts, 100, 50))).toBe(products(graphOf(experts, 100, 100)));
  });
});

test("on WebAssembly separate backward chunks give the same result except for rounding of products", async () => {
  const [tokens, wide] = [37, 24];
  const results = async (backwardChunks: number): Promise<readonly NdArray[]> => {
    const layer = moeLayer({
      gate: switchGate({ width: wide, numExperts: 3, numChoices: 2 }),
      experts: swigluExperts({ width: wide, hidden: 40, deviation: 0.5, outputDeviation: 0.5 }),
      chunks: 2,
      backwardChunks,
    });
    const step = (key: Tensor, x: Tensor) => {
      const { params, state } = layer.init(key);
      return valueAndGrad((own: typeof params) => sum(square(layer.apply(own, state, x, { train: true })[0])))(params);
    };
    const x = NdArray.from(
      Array.from({ length: tokens * wide }, (_, i) => Math.sin(1.7 * i)),
      [tokens, wide],
    );
    return flattenTree<NdArray>(await evaluate(step, await createCpuBackend())(keyOf(3), x)).leaves;
  };
  const reference = await results(2);
  for (const backwardChunks of [1, 5])
    (await results(backwardChunks)).forEach((array, i) => expectClose(array, reference[i]!));
});

test("second derivatives equal those of backward in the same number of chunks", async () => {
  const results = async (backwardChunks: number): Promise<readonly NdArray[]> => {
    const layer = layerOf({ gate: gates[0]!, capacity: capacityByFactor({ factor: 4 }), chunks: 2, backwardChunks });
    const step = (key: Tensor, x: Tensor): Tensor => {
      const { params, state } = layer.init(key);
      const loss = (own: Tensor): Tensor => sum(square(layer.apply(params, state, own, { train: true })[0]));
      const steepness = (own: Tensor): Tensor => sum(square(valueAndGrad(loss)(own)[1]));
      return valueAndGrad(steepness)(x)[1];
    };
    const x = NdArray.from(
      Array.from({ length: 7 * width }, (_, i) => Math.sin(1.7 * i)),
      [7, width],
    );
    return [await evaluate(step, referenceBackend())(keyOf(3), x)];
  };
  const [reference] = await results(2);
  expect(reference!.toNumbers().some((value) => Math.abs(value) > 1e-3)).toBe(true);
  for (const backwardChunks of [1, 3]) expectClose((await results(backwardChunks))[0]!, reference!);
});

const axes = ["hosts", "inside"];
test.each([raggedDispatcher(), hierarchicalDispatcher({ axes }), duplicateFreeDispatcher({ axes })])(
  "rejects a dispatcher whose chunks are tokens, unless both numbers are equal",
  (dispatcher) => {
    expect(() => layerOf({ gate: gates[0]!, dispatcher, chunks: 2, backwardChunks: 4 })).toThrow(
      /^moeLayer: chunks is 2 and backwardChunks 4, .*both must be equal, or use denseDispatcher\(\)$/,
    );
    layerOf({ gate: gates[0]!, dispatcher, chunks: 2, backwardChunks: 2 });
  },
);

test("rejects an invalid number of chunks", () => {
  expect(() => layerOf({ gate: gates[0]!, dispatcher: denseDispatcher(), backwardChunks: 0.5 })).toThrow(
    "moeLayer: backwardChunks is 0.5; use a whole number from 1",
  );
});

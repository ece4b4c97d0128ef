import { createCpuBackend } from "@skein/cpu-kernels";
import { evaluate, NdArray, type Tensor } from "@skein/tensor-core";
import { examples, firstDifference } from "@skein/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  byProbability,
  capacityByFactor,
  denseDispatcher,
  duplicateFreeDispatcher,
  type Gate,
  geluExperts,
  hierarchicalDispatcher,
  moeLayer,
  type MoeLayerOptions,
  raggedDispatcher,
  softGate,
  swigluExperts,
  switchGate,
  type TokenDispatcher,
} from "../src/index.ts";
import { type AnyLayer, initRanks, type RankTokens, type StepResult, stepOnRanks } from "./step.ts";
import { keyOf, tokensOf, width } from "./tokens.ts";
import { levelsOf, partsOf } from "./world.ts";

const numExperts = 4;
const numRanks = 4;
const levels = levelsOf([2, 2]);
const axes = Object.keys(levels);

const dispatchers: readonly { readonly name: string; readonly dispatcher: TokenDispatcher }[] = [
  { name: "denseDispatcher", dispatcher: denseDispatcher() },
  { name: "raggedDispatcher", dispatcher: raggedDispatcher() },
  { name: "hierarchicalDispatcher", dispatcher: hierarchicalDispatcher({ axes }) },
  { name: "duplicateFreeDispatcher", dispatcher: duplicateFreeDispatcher({ axes }) },
];

const gates: readonly Gate[] = [
  switchGate({ width, numExperts, numChoices: 3 }) as Gate,
  softGate({ width, numExperts, slots: 3 }) as Gate,
];

type Options = MoeLayerOptions<unknown, unknown, unknown, unknown>;

const layerOf = (options: Partial<Options>): AnyLayer =>
  moeLayer({
    experts: geluExperts({ width, hidden: 5, deviation: 0.7, outputDeviation: 0.7 }),
    ...options,
  } as Options) as never;

const step = (layer: AnyLayer, ranks: readonly RankTokens[]): StepResult[] =>
  stepOnRanks(() => layer, initRanks(layer, numRanks), ranks, { levels });

const numTokens = 5;
const ranks = fc.tuple(tokensOf(numRanks * numTokens), tokensOf(numRanks * numTokens)).map(([x, cotangent]) => {
  const [tokens, cotangents] = [partsOf(x, numRanks), partsOf(cotangent, numRanks)];
  return tokens.map((own, rank): RankTokens => [own, cotangents[rank]!, keyOf(rank)]);
});

const expectClose = (actual: NdArray, expected: NdArray): void => {
  const numbers = expected.toNumbers();
  const greatest = numbers.reduce((most, value) => Math.max(most, Math.abs(value)), 1);
  expect(firstDifference(actual.toNumbers(), numbers, { absolute: 2e-5 * greatest, relative: 0 })).toBeUndefined();
};

describe.each(dispatchers)("$name", ({ dispatcher }) => {
  test("chunks change no bit of the output and no dropped entry, and gradients only by rounding", () => {
    fc.assert(
      fc.property(
        ranks,
        fc.constantFrom(...gates),
        fc.constantFrom(0.5, 1, 4),
        fc.constantFrom(2, 3, 4, 100),
        (own, gate, factor, chunks) => {
          const options = { gate, dispatcher, capacity: capacityByFactor({ factor, dropOrder: byProbability }) };
          const whole = step(layerOf(options), own);
          step(layerOf({ ...options, chunks }), own).forEach((result, rank) => {
            expect(result.y.toNumbers()).toEqual(whole[rank]!.y.toNumbers());
            expect(result.figures.droppedShare.item()).toBe(whole[rank]!.figures.droppedShare.item());
            expectClose(result.xGradient, whole[rank]!.xGradient);
            for (const part of ["gate", "experts"] as const)
              for (const [name, gradient] of Object.entries(whole[rank]!.gradients[part]))
                expectClose(result.gradients[part][name]!, gradient);
          });
        },
      ),
      { numRuns: examples(8, 100) },
    );
  });

  test("tokens in another order get the same bits if nothing is dropped", () => {
    const layer = layerOf({ gate: gates[0]!, dispatcher, capacity: capacityByFactor({ factor: 4 }), chunks: 2 });
    const orders = fc.shuffledSubarray([0, 1, 2, 3, 4], { minLength: numTokens, maxLength: numTokens });
    fc.assert(
      fc.property(ranks, orders, (own, order) => {
        const moved = (array: NdArray): NdArray => {
          const numbers = array.toNumbers();
          return NdArray.from(
            order.flatMap((token) => numbers.slice(token * width, (token + 1) * width)),
            array.shape,
          );
        };
        const straight = step(layer, own);
        const shuffled = step(
          layer,
          own.map(([x, cotangent, key]) => [moved(x), moved(cotangent), key] as const),
        );
        shuffled.forEach(({ y }, rank) => expect(y.toNumbers()).toEqual(moved(straight[rank]!.y).toNumbers()));
      }),
      { numRuns: examples(5, 100) },
    );
  });
});

test.each([
  ["dense", denseDispatcher()],
  ["ragged", raggedDispatcher()],
])(
  "on WebAssembly %s chunks give the same result except for rounding within tiles of rows",
  async (_name, dispatcher: TokenDispatcher) => {
    const [tokens, wide] = [37, 24];
    const outputs = async (chunks: number): Promise<NdArray> => {
      const layer = moeLayer({
        gate: switchGate({ width: wide, numExperts: 3, numChoices: 2 }),
        experts: swigluExperts({ width: wide, hidden: 40, deviation: 0.5, outputDeviation: 0.5 }),
        dispatcher,
        chunks,
      });
      const forward = (key: Tensor, x: Tensor): Tensor => {
        const { params, state } = layer.init(key);
        return layer.apply(params, state, x, { train: false })[0];
      };
      const x = NdArray.from(
        Array.from({ length: tokens * wide }, (_, i) => Math.sin(1.7 * i)),
        [tokens, wide],
      );
      return evaluate(forward, await createCpuBackend())(keyOf(3), x);
    };
    const whole = await outputs(1);
    expect(whole.toNumbers().some((value) => value !== 0)).toBe(true);
    for (const chunks of [2, 5, 37]) expectClose(await outputs(chunks), whole);
  },
);

test("rejects an invalid number of chunks", () => {
  expect(() => layerOf({ gate: gates[0]!, chunks: 0 })).toThrow("moeLayer: chunks is 0; use a whole number from 1");
});

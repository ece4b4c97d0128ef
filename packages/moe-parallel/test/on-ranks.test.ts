import { NdArray, reshape, slice, type Tensor } from "@skein/tensor-core";
import { examples } from "@skein/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  capacityByFactor,
  capacityByMaximum,
  denseDispatcher,
  duplicateFreeDispatcher,
  type Gate,
  geluExperts,
  hierarchicalDispatcher,
  moeLayer,
  type MoeLayerOptions,
  raggedDispatcher,
  swigluExperts,
  type TokenDispatcher,
} from "../src/index.ts";
import { byParts } from "./by-parts.ts";
import { added, expectClose, expectCloseTrees } from "./close-trees.ts";
import { type GateRow, gateRows } from "./gate-rows.ts";
import { type AnyLayer, gateKey, initRanks, type LayerArrays, type RankTokens, stepOnRanks } from "./step.ts";
import { keyOf, tokensOf, width } from "./tokens.ts";
import { joined, type Levels, levelsOf, partsOf } from "./world.ts";

const numExperts = 4;
/** Returns two mesh axes for this number of ranks. The innermost axis has all ranks unless there are four ranks. */
const levelsFor = (numRanks: number): Levels => levelsOf(numRanks === 4 ? [2, 2] : [1, numRanks]);
const axes = Object.keys(levelsFor(1));

interface Row {
  readonly name: string;
  readonly dispatcher: TokenDispatcher;
  /** Whether quick tests include the gate. If dispatched over levels, most gates send the same data. */
  readonly isQuick: (gate: GateRow) => boolean;
}

const several = ({ name }: GateRow): boolean =>
  /^(switchGate with two choices|noisyTopKGate of all experts|expertChoiceGate|softGate)$/.test(name);

const dispatchers: readonly Row[] = [
  { name: "dense", dispatcher: denseDispatcher(), isQuick: () => true },
  { name: "ragged", dispatcher: raggedDispatcher(), isQuick: () => true },
  { name: "hierarchical", dispatcher: hierarchicalDispatcher({ axes }), isQuick: several },
  { name: "duplicate-free", dispatcher: duplicateFreeDispatcher({ axes }), isQuick: several },
];

type Options = Partial<MoeLayerOptions<unknown, unknown, unknown, unknown>>;

const layerOf = (gate: Gate, options: Options = {}): AnyLayer =>
  moeLayer({
    gate,
    experts: geluExperts({ width, hidden: 4, deviation: 0.7, outputDeviation: 0.7 }),
    ...options,
  } as MoeLayerOptions<unknown, unknown, unknown, unknown>) as never;

const mean = (numbers: readonly number[]): number =>
  numbers.reduce((total, value) => total + value, 0) / numbers.length;

const together = (ranks: readonly LayerArrays[]): Readonly<Record<string, NdArray>> =>
  Object.fromEntries(
    Object.keys(ranks[0]!.experts).map((name) => [name, joined(ranks.map(({ experts }) => experts[name]!))]),
  );

interface Setting {
  readonly numRanks: number;
  readonly chunks: number;
  readonly ranks: readonly RankTokens[];
}

const settings = fc
  .record({ numRanks: fc.constantFrom(1, 2, 4), numTokens: fc.integer({ min: 1, max: 5 }) })
  .chain(({ numRanks, numTokens }) =>
    fc.record({
      numRanks: fc.constant(numRanks),
      chunks: fc.constantFrom(1, 2, 4),
      ranks: fc.tuple(tokensOf(numRanks * numTokens), tokensOf(numRanks * numTokens)).map(([x, cotangent]) => {
        const [tokens, cotangents] = [partsOf(x, numRanks), partsOf(cotangent, numRanks)];
        return tokens.map((own, rank) => [own, cotangents[rank]!, keyOf(50 + rank)] as const);
      }),
    }),
  );

const allTokens = (ranks: readonly RankTokens[]): RankTokens => [
  joined(ranks.map(([x]) => x)),
  joined(ranks.map(([, cotangent]) => cotangent)),
  NdArray.from(
    ranks.flatMap(([, , key]) => key.toNumbers()),
    [ranks.length, 2],
    "u32",
  ),
];

const keysOf = (key_P2: Tensor): Tensor[] =>
  Array.from({ length: key_P2.shape[0]! }, (_, part) => gateKey(reshape(slice(key_P2, [part], [part + 1]), [2])));

describe.each(dispatchers)("$name", ({ dispatcher, isQuick }) => {
  describe.each(gateRows)("$name", (row: GateRow) => {
    const { gate: gateOf, perToken } = row;
    const tags = isQuick(row) ? [] : ["full"];
    const gate = gateOf({ width, numExperts });

    const expectAsOne = ({ numRanks, chunks, ranks }: Setting, options: Options): void => {
      const layer = layerOf(gate, { ...options, dispatcher, chunks });
      const one = layerOf(gate, options);
      // Each rank computes the auxiliary loss of all tokens, so its mean over ranks counts it once.
      const results = stepOnRanks(() => layer, initRanks(layer, numRanks), ranks, {
        lossScale: 1 / numRanks,
        levels: levelsFor(numRanks),
      });
      const [expected] = stepOnRanks(
        perToken ? () => one : (key) => layerOf(byParts(gate, keysOf(key)), options),
        initRanks(one, 1),
        [allTokens(ranks)],
      );
      expectClose(joined(results.map(({ y }) => y)).toNumbers(), expected!.y.toNumbers(), "y");
      expectClose(joined(results.map(({ xGradient }) => xGradient)).toNumbers(), expected!.xGradient.toNumbers(), "x");
      const gradients = results.map((result) => result.gradients);
      expectCloseTrees(together(gradients), expected!.gradients.experts, "experts");
      expectCloseTrees(added(gradients.map((own) => own.gate)), expected!.gradients.gate, "gate");
      if (!perToken) return;
      for (const { loss, state, figures } of results) {
        expectClose(figures.load_E.toNumbers(), expected!.figures.load_E.toNumbers(), "load");
        expectClose(figures.entropy.toNumbers(), expected!.figures.entropy.toNumbers(), "entropy");
        expect(state).toEqual(expected!.state);
        expectClose([mean(results.map(({ loss: own }) => own.item()))], expected!.loss.toNumbers(), "loss");
        expect(Number.isFinite(loss.item())).toBe(true);
      }
    };

    test("ranks that drop nothing equal one rank with all tokens, in forward and all gradients", { tags }, () => {
      fc.assert(
        fc.property(settings, fc.constantFrom("none", "before-dropping", "after-dropping"), (setting, normalisation) =>
          expectAsOne(setting, { capacity: capacityByMaximum(), normalisation: normalisation as never }),
        ),
        { numRuns: examples(6, 100) },
      );
    });

    test("ranks that drop equal one rank that processes their tokens in sequence", { tags }, () => {
      fc.assert(
        fc.property(settings, fc.constantFrom(0.3, 1, 1.5), ({ numRanks, chunks, ranks }, factor) => {
          const options: Options = { capacity: capacityByFactor({ factor }), tokenAxes: [] };
          const layer = layerOf(gate, { ...options, dispatcher, chunks });
          const one = layerOf(gate, options);
          const results = stepOnRanks(() => layer, initRanks(layer, numRanks), ranks, { levels: levelsFor(numRanks) });
          const expected = ranks.map((own) => stepOnRanks(() => one, initRanks(one, 1), [own])[0]!);
          results.forEach((result, rank) => {
            expectClose(result.y.toNumbers(), expected[rank]!.y.toNumbers(), `y of rank ${rank}`);
            expectClose(result.xGradient.toNumbers(), expected[rank]!.xGradient.toNumbers(), `x of rank ${rank}`);
            expectCloseTrees(result.gradients.gate, expected[rank]!.gradients.gate, `gate of rank ${rank}`);
          });
          expectCloseTrees(
            together(results.map(({ gradients }) => gradients)),
            added(expected.map(({ gradients }) => gradients.experts)),
            "experts",
          );
        }),
        { numRuns: examples(6, 100) },
      );
    });
  });
});

test("also holds for swiglu experts and a shared expert", () => {
  const sizes = { width, hidden: 4, deviation: 0.7, outputDeviation: 0.7 };
  const options: Options = {
    experts: swigluExperts(sizes),
    shared: swigluExperts(sizes),
    capacity: capacityByMaximum(),
  };
  const layer = layerOf(gateRows[0]!.gate({ width, numExperts }), options);
  fc.assert(
    fc.property(settings, ({ numRanks, ranks }) => {
      const results = stepOnRanks(() => layer, initRanks(layer, numRanks), ranks);
      const [expected] = stepOnRanks(() => layer, initRanks(layer, 1), [allTokens(ranks)]);
      expectClose(joined(results.map(({ y }) => y)).toNumbers(), expected!.y.toNumbers(), "y");
      const gradients = results.map((result) => result.gradients);
      expectCloseTrees(together(gradients), expected!.gradients.experts, "experts");
      expectCloseTrees(added(gradients.map((own) => own.shared!)), expected!.gradients.shared!, "shared");
    }),
    { numRuns: examples(4, 60) },
  );
});

test("parameters of an expert are equal for any number of ranks", () => {
  const layer = layerOf(gateRows[0]!.gate({ width, numExperts }));
  const [one] = initRanks(layer, 1);
  for (const numRanks of [2, 4]) {
    const ranks = initRanks(layer, numRanks).map(({ params }) => params);
    for (const [name, array] of Object.entries(together(ranks)))
      expect(array.toNumbers()).toEqual(one!.params.experts[name]!.toNumbers());
  }
});

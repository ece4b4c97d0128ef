import {
  cast,
  constant,
  full,
  type Graph,
  groupedMatmul,
  mixedPrecision,
  NdArray,
  scope,
  sum,
  type Tensor,
  trace,
  valueAndGrad,
} from "@skein/tensor-core";
import { eliminateDeadCode } from "@skein/tensor-core/backend";
import { examples } from "@skein/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  byProbability,
  byToken,
  capacityByFactor,
  capacityByMaximum,
  type ExpertChoices,
  defineGate,
  expertChoiceGate,
  type Experts,
  type Gate,
  isGateNode,
  raggedDispatcher,
  softGate,
  switchGate,
} from "../src/index.ts";
import { initLoadHistory } from "../src/routing/load-history.ts";
import { gateRows } from "./gate-rows.ts";
import { counting, type GateDecisions, routings, weightsOf } from "./routings.ts";
import { layerOf, type Options, ranksOf } from "./layers.ts";
import { initRanks, stepOnRanks } from "./step.ts";
import { tokensOf, width } from "./tokens.ts";
import { joined, partsOf, runRanks } from "./world.ts";

/** Returns a gate with fixed choices. The parameters of the gate are the weights of the choices. */
const givenGate = (routing: GateDecisions): Gate =>
  defineGate({
    name: "givenGate",
    width,
    numExperts: routing.numExperts,
    init: () => ({ params: {}, state: {} }),
    route: (params: { readonly weights_TK: Tensor }) => {
      const choices_TK = constant(routing.choices.flat(), "i32", [routing.choices.length, routing.numChoices]);
      const even_TE = full([routing.choices.length, routing.numExperts], 1 / routing.numExperts);
      const choices: ExpertChoices = { kind: "choices", choices_TK, weights_TK: params.weights_TK };
      return { routing: choices, scores: { logits_TE: even_TE, probabilities_TE: even_TE } };
    },
  }) as Gate;

/** Returns the state of a layer with a `givenGate`, with experts in order. */
const stateOf = (numExperts: number): object => ({
  gate: {},
  placeOf_E: NdArray.from(
    Array.from({ length: numExperts }, (_, expert) => expert),
    [numExperts],
    "i32",
  ),
  meanLoad_E: NdArray.zeros("f32", [numExperts]),
  loadWeight: NdArray.zeros("f32", []),
});

/** Experts that multiply by a matrix, which is initially the identity. */
const linearExperts: Experts<{ readonly weight_DD: Tensor }> = {
  init: () => ({
    weight_DD: constant([
      [1, 0, 0],
      [0, 1, 0],
      [0, 0, 1],
    ]),
  }),
  apply: ({ weight_DD }, rows_SD, counts_e) => groupedMatmul(rows_SD, weight_DD, counts_e),
};

/** Returns parameters of `linearExperts` with which each expert multiplies by a scalar. */
const scaling = (...scales: readonly number[]): { readonly weight_DD: NdArray } => ({
  weight_DD: NdArray.from(
    scales.flatMap((scale) => [scale, 0, 0, 0, scale, 0, 0, 0, scale]),
    [scales.length, width, width],
    "f32",
  ),
});

const expectClose = (actual: readonly number[], expected: readonly number[], digits = 4): void => {
  expect(actual).toHaveLength(expected.length);
  actual.forEach((value, i) =>
    expect(value / (1 + Math.abs(expected[i]!))).toBeCloseTo(expected[i]! / (1 + Math.abs(expected[i]!)), digits),
  );
};

describe("placement", () => {
  const dispatchers = [undefined, raggedDispatcher()];
  const gates = gateRows.filter(({ name }) => /^(switchGate|cosineGate|expertChoiceGate|softGate)$/.test(name));
  const numExperts = 4;

  test.each(gates)("$name: placement does not change the results", ({ gate: gateOf }) => {
    const gate = gateOf({ width, numExperts });
    fc.assert(
      fc.property(
        fc.constantFrom(1, 2, 4),
        tokensOf(8),
        fc.shuffledSubarray([0, 1, 2, 3], { minLength: 4, maxLength: 4 }),
        fc.constantFrom(...dispatchers),
        fc.constantFrom(0.5, 1, 4),
        (numRanks, x, placement, dispatcher, factor) => {
          const options = { gate, capacity: capacityByFactor({ factor }), ...(dispatcher && { dispatcher }) };
          const [inOrder, placed] = [layerOf(options), layerOf({ ...options, placement })];
          const ranks = ranksOf(x, numRanks);
          const initial = [inOrder, placed].map((layer) => initRanks(layer, numRanks));
          const [expected, got] = [inOrder, placed].map((layer, i) => stepOnRanks(() => layer, initial[i]!, ranks));
          got!.forEach((result, rank) => {
            expectClose(result.y.toNumbers(), expected![rank]!.y.toNumbers());
            expectClose(result.xGradient.toNumbers(), expected![rank]!.xGradient.toNumbers());
            for (const [name, gradient] of Object.entries(expected![rank]!.gradients.gate))
              expectClose(result.gradients.gate[name]!.toNumbers(), gradient.toNumbers());
            const { duplicationRate: _, ...figures } = expected![rank]!.figures; // depends on the placement
            for (const [name, figure] of Object.entries(figures))
              expectClose(result.figures[name as "entropy"].toNumbers(), figure.toNumbers());
          });
          // Parameters and gradients of an expert are on the rank of its position.
          for (const name of ["up_DF", "down_FD"]) {
            const places = (of: (rank: number, i: number) => NdArray, i: number): NdArray[] =>
              partsOf(joined(ranks.map((_, rank) => of(rank, i))), numExperts);
            const params = [0, 1].map((i) => places((rank) => initial[i]![rank]!.params.experts[name]!, i));
            const gradients = [expected!, got!].map((results, i) =>
              places((rank) => results[rank]!.gradients.experts[name]!, i),
            );
            placement.forEach((place, expert) => {
              expect(params[1]![place]!.toNumbers()).toEqual(params[0]![expert]!.toNumbers());
              expectClose(gradients[1]![place]!.toNumbers(), gradients[0]![expert]!.toNumbers());
            });
          }
        },
      ),
      { numRuns: examples(8, 100) },
    );
  });

  test("rejects a placement that is not a permutation", () => {
    const gate = switchGate({ width, numExperts: 3 }) as Gate;
    for (const placement of [
      [0, 1],
      [0, 1, 1],
      [0, 1, 3],
      [0, 1, -1],
      [0, 1, 2, 3],
      [0, 1, 0.5],
    ])
      expect(() => layerOf({ gate, placement })).toThrow(
        /moeLayer: placement \[.*\] is not a permutation of 3 positions; give each expert its own position, 0 to 2/,
      );
  });
});

test("training steps update the mean of loads, other steps do not; positions do not change", () => {
  const layer = layerOf({
    gate: switchGate({ width, numExperts: 4 }) as Gate,
    loadDecay: 0.5,
    placement: [2, 0, 3, 1],
  });
  const x = NdArray.from(new Array(24).fill(0), [8, 3], "f32"); // zeros tie, and go to the first expert
  for (const numRanks of [1, 2]) {
    const initial = initRanks(layer, numRanks);
    const [once] = stepOnRanks(() => layer, initial, ranksOf(x, numRanks));
    const twice = stepOnRanks(
      () => layer,
      initial.map(({ params }) => ({ params, state: once!.state })),
      ranksOf(x, numRanks),
    )[0]!;
    const [untrained] = stepOnRanks(() => layer, initial, ranksOf(x, numRanks), { train: false });
    const states = [untrained!, once!, twice].map(({ state }) => state as Readonly<Record<string, NdArray>>);
    expect(states.map(({ meanLoad_E }) => meanLoad_E!.toNumbers())).toEqual([
      [0, 0, 0, 0],
      [8, 0, 0, 0],
      [8, 0, 0, 0],
    ]);
    expect(states.map(({ loadWeight }) => loadWeight!.item())).toEqual([0, 1, 1.5]);
    for (const { placeOf_E } of states) expect(placeOf_E!.toNumbers()).toEqual([2, 0, 3, 1]);
  }
  expect(() => layerOf({ gate: switchGate({ width, numExperts: 4 }) as Gate, loadDecay: 1.5 })).toThrow(
    /moeLayer: loadDecay is 1\.5; use a number from 0 to 1/,
  );
});

test("rejects a number of experts that is not divisible by the ranks, with what, both values, the rule and the cure", () => {
  const layer = layerOf({ gate: switchGate({ width, numExperts: 6 }) as Gate });
  const x = NdArray.from(new Array(12).fill(1), [4, 3], "f32");
  const initial = initRanks(layer, 1)[0]!;
  const run = (): unknown => stepOnRanks(() => layer, [initial, initial, initial, initial], ranksOf(x, 4));
  expect(run).toThrow(
    'moeLayer: 6 experts are not divisible by the 4 ranks of axis "expert"; every rank holds the same number: use 8 experts, or a number of ranks that divides 6',
  );
  expect(() => initRanks(layer, 4)).toThrow(/6 experts are not divisible/);
});

describe("a bound that is exceeded", () => {
  const gate = switchGate({ width, numExperts: 4 }) as Gate;
  const zeros = NdArray.from(new Array(12).fill(0), [4, 3], "f32");

  test.each([1, 2])(
    "makes the output NaN on the rank, and figures contain a sufficient bound (%i ranks)",
    (numRanks) => {
      for (const dispatcher of [undefined, raggedDispatcher()]) {
        const result = (bound: number) => {
          const layer = layerOf({ gate, capacity: capacityByMaximum({ bound }), ...(dispatcher && { dispatcher }) });
          return stepOnRanks(() => layer, initRanks(layer, numRanks), ranksOf(zeros, numRanks));
        };
        const most = 4 / numRanks;
        for (const { y, figures } of result(most)) {
          expect(y.toNumbers().every(Number.isFinite)).toBe(true);
          expect(figures.droppedShare.item()).toBe(0);
        }
        for (const { y, figures } of result(most - 1)) {
          expect(y.toNumbers().every(Number.isNaN)).toBe(true);
          expect(figures.greatestLoad.item()).toBe(most);
          expect(figures.droppedShare.item()).toBeGreaterThan(0);
        }
      }
    },
  );
});

test("weights of a token with a dropped choice sum to 1 with normalization after dropping, and to less with normalization before", () => {
  const routing: GateDecisions = {
    numExperts: 2,
    numChoices: 2,
    choices: [
      [0, 1],
      [0, 1],
      [0, -1],
    ],
    weights: [
      [0.5, 0.25],
      [0.25, 0.25],
      [0.5, 0.5],
    ],
  };
  const x = NdArray.from([1, 1, 1, 1, 1, 1, 1, 1, 1], [3, 3], "f32");
  const output = (normalisation: Options["normalisation"]): number[] => {
    const layer = layerOf({
      gate: givenGate(routing),
      experts: linearExperts as Experts,
      capacity: capacityByFactor({ factor: 1 / 3, dropOrder: byProbability }), // one slot per expert
      ...(normalisation && { normalisation }),
    });
    const params = {
      gate: { weights_TK: weightsOf(routing) },
      experts: scaling(1, 1),
    };
    const { y } = stepOnRanks(() => layer, [{ params, state: stateOf(routing.numExperts) }], ranksOf(x, 1))[0]!;
    return [0, 3, 6].map((i) => y.toNumbers()[i]!);
  };
  expect(output(undefined)).toEqual([0.75, 0, 0]);
  expectClose(output("before-dropping"), [1, 0, 0], 6);
  expectClose(output("after-dropping"), [1, 0, 0], 6);
});

test("gradients of combine weights equal finite differences", () => {
  const setting = routings({ numExperts: fc.constant(4), numTokens: fc.integer({ min: 1, max: 5 }) }).chain((routing) =>
    fc.record({
      routing: fc.constant(routing),
      normalisation: fc.constantFrom("none" as const, "before-dropping" as const, "after-dropping" as const),
      factor: fc.constantFrom(0.5, 1, 4),
    }),
  );
  fc.assert(
    fc.property(setting, ({ routing, normalisation, factor }) => {
      const layer = layerOf({ gate: givenGate(routing), normalisation, capacity: capacityByFactor({ factor }) });
      const { experts } = initRanks(layerOf({ gate: switchGate({ width, numExperts: 4 }) as Gate }), 1)[0]!.params;
      // Away from 0, where division by the sum has large derivatives.
      const weights = routing.weights.flat().map((weight) => weight + 0.5);
      const ranks = ranksOf(counting([routing.choices.length, width]), 1);
      const run = (own: readonly number[]) => {
        const gate = { weights_TK: NdArray.from(own, [routing.choices.length, routing.numChoices], "f32") };
        return stepOnRanks(() => layer, [{ params: { gate, experts }, state: stateOf(4) }], ranks)[0]!;
      };
      const [, cotangent] = ranks[0]!;
      const loss = (own: readonly number[]): number =>
        run(own)
          .y.toNumbers()
          .reduce((total, value, i) => total + value * cotangent.toNumbers()[i]!, 0);
      const gradient = run(weights).gradients.gate["weights_TK"]!.toNumbers();
      const h = 2 ** -6;
      const differences = weights.map((_, i) => {
        const moved = (by: number): number => loss(weights.map((value, j) => value + (i === j ? by : 0)));
        return (moved(h) - moved(-h)) / (2 * h);
      });
      const most = Math.max(1, ...differences.map(Math.abs));
      gradient.forEach((value, i) => expect(Math.abs(value - differences[i]!) / most).toBeLessThan(2e-3));
    }),
    { numRuns: examples(25, 300) },
  );
});

test("tokens in another order give the same result if nothing is dropped, or the least probable entries are", () => {
  const gate = switchGate({ width, numExperts: 4 }) as Gate;
  const x = Array.from({ length: 24 }, (_, i) => Math.sin(5 * i + 2) * 4);
  for (const capacity of [capacityByMaximum(), capacityByFactor({ factor: 0.75, dropOrder: byProbability })]) {
    const layer = layerOf({ gate, capacity });
    const output = (order: readonly number[]): number[] => {
      const rows = order.flatMap((token) => x.slice(3 * token, 3 * token + 3));
      return stepOnRanks(
        () => layer,
        initRanks(layer, 1),
        ranksOf(NdArray.from(rows, [8, 3], "f32"), 1),
      )[0]!.y.toNumbers();
    };
    const straight = output([0, 1, 2, 3, 4, 5, 6, 7]);
    fc.assert(
      fc.property(fc.shuffledSubarray([0, 1, 2, 3, 4, 5, 6, 7], { minLength: 8, maxLength: 8 }), (order) => {
        expectClose(
          output(order),
          order.flatMap((token) => straight.slice(3 * token, 3 * token + 3)),
          5,
        );
      }),
      { numRuns: examples(10, 100) },
    );
  }
});

test("the output has the shape and dtype of the tokens", () => {
  const layer = layerOf({ gate: switchGate({ width, numExperts: 2 }) as Gate });
  const { params, state } = initRanks(layer, 1)[0]!;
  const x = counting([2, 4, width]);
  const [wide, half] = (["f32", "f16"] as const).map(
    (dtype) =>
      runRanks(
        ((own: never, held: never, tokens: Tensor) =>
          layer.apply(own, held, cast(tokens, dtype), { train: false })[0]) as never,
        [[params, state, x]] as never,
      )[0] as unknown as NdArray,
  );
  expect([wide!.dtype, ...wide!.shape]).toEqual(["f32", 2, 4, width]);
  expect([half!.dtype, ...half!.shape]).toEqual(["f16", 2, 4, width]);
  half!.toNumbers().forEach((value, i) => expect(value).toBeCloseTo(wide!.toNumbers()[i]!, 1));
});

test("with identity experts each token is multiplied by the sum of its remaining weights; other experts apply their function", () => {
  const slots = fc.constantFrom(0.5, 1, 4);
  const setting = routings({ numExperts: fc.constant(4) });
  fc.assert(
    fc.property(setting, slots, fc.constantFrom(1, 2), (routing, factor, base) => {
      const layer = layerOf({
        gate: givenGate(routing),
        experts: linearExperts as Experts,
        capacity: capacityByFactor({ factor, dropOrder: byToken }),
      });
      const params = {
        gate: { weights_TK: weightsOf(routing) },
        experts: scaling(1, base, base ** 2, base ** 3),
      };
      const numTokens = routing.choices.length;
      const x = counting([numTokens, width]);
      const { y } = stepOnRanks(() => layer, [{ params, state: stateOf(routing.numExperts) }], ranksOf(x, 1))[0]!;
      const room = Math.min(numTokens, Math.max(1, Math.ceil((factor * routing.numChoices * numTokens) / 4)));
      const numUsed = [0, 0, 0, 0];
      const factors = routing.choices.map((own, token) =>
        own.reduce((total, expert, k) => {
          if (expert === -1 || numUsed[expert]! >= room) return total;
          numUsed[expert]!++;
          return total + routing.weights[token]![k]! * base ** expert;
        }, 0),
      );
      expectClose(
        y.toNumbers(),
        x.toNumbers().map((value, i) => value * factors[Math.floor(i / width)]!),
        5,
      );
    }),
    { numRuns: examples(40, 500) },
  );
});

test("a mixture uses every slot, for any capacity", () => {
  const layer = layerOf({
    gate: softGate({ width, numExperts: 2, slots: 3 }) as Gate,
    capacity: capacityByFactor({ factor: 0.1 }),
  });
  const { figures } = stepOnRanks(() => layer, initRanks(layer, 1), ranksOf(counting([4, 3]), 1))[0]!;
  expect(figures.load_E.toNumbers()).toEqual([3, 3]);
  expect(figures.droppedShare.item()).toBe(0);
});

test("choices of an expert-choice gate are never dropped, for any capacity", () => {
  const layer = layerOf({
    gate: expertChoiceGate({ width, numExperts: 2, meanChoices: 1 }) as Gate,
    capacity: capacityByFactor({ factor: 0.1 }),
  });
  const { figures } = stepOnRanks(() => layer, initRanks(layer, 1), ranksOf(counting([6, 3]), 1))[0]!;
  expect(figures.load_E.toNumbers()).toEqual([3, 3]);
  expect(figures.droppedShare.item()).toBe(0);
});

test("a shared expert is added for every token, including dropped ones", () => {
  const experts = linearExperts as Experts;
  const layer = layerOf({
    gate: switchGate({ width, numExperts: 4 }) as Gate,
    experts,
    shared: experts,
    capacity: capacityByFactor({ factor: 0.01 }),
  });
  const x = NdArray.from([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3], [4, 3], "f32");
  const { params, state } = initRanks(layer, 1)[0]!;
  const own = { ...params, shared: scaling(10), experts: scaling(0, 0, 0, 0) };
  const { y } = stepOnRanks(() => layer, [{ params: own, state }], ranksOf(x, 1))[0]!;
  expect(y.toNumbers()).toEqual(x.toNumbers().map((value) => 10 * value));
});

describe("the graph", () => {
  const gate = softGate({ width, numExperts: 2, slots: 2 }) as Gate;
  const layer = layerOf({ gate });
  const initial = initRanks(layer, 1)[0]!;
  const tracedState = () => ({ gate: {}, placeOf_E: constant([0, 1], "i32"), ...initLoadHistory(2) }) as never;
  const specs = [initial.params, counting([4, width])];
  const forward = (params: never, x: Tensor): Tensor =>
    scope("block-0", () => layer.apply(params, tracedState(), x, { train: true })[0]);

  test("keeps the gate in f32 in mixed precision, and nothing else", () => {
    const step = (params: never, x: Tensor) => valueAndGrad((own: never) => sum(forward(own, x)))(params);
    const { graph } = trace(step as never, specs as never);
    const halves = (mixed: Graph, ofGate: boolean): number =>
      mixed.nodes.filter((node) => node.scope.startsWith("block-0/gate") === ofGate && node.specs[0]!.dtype === "f16")
        .length;
    const kept = mixedPrecision(graph, { keeps: isGateNode });
    expect(halves(kept, true)).toBe(0);
    expect(halves(kept, false)).toBeGreaterThan(0);
    expect(halves(mixedPrecision(graph), true)).toBeGreaterThan(0);
  });

  test("has no collective for unused figures", () => {
    const choosing = layerOf({ gate: switchGate({ width, numExperts: 2 }) as Gate });
    const [own] = initRanks(choosing, 2);
    const fn = (params: never, x: Tensor): Tensor => choosing.apply(params, tracedState(), x, { train: true })[0];
    const { graph } = trace(fn as never, [own!.params, counting([4, width])] as never, { mesh: { expert: 2 } });
    const collectives = eliminateDeadCode(graph).nodes.flatMap(({ op }) => (/all-/.test(op) ? [op] : []));
    expect(collectives).toEqual(["all-to-all", "all-to-all"]);
  });
});

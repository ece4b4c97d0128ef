import { arange, multiply, NdArray, type Tensor } from "@skein/tensor-core";
import { examples } from "@skein/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  assignRows,
  byBatchPriority,
  byChoice,
  byProbability,
  byRandomOrder,
  byToken,
  type DropOrder,
  type ExpertChoices,
  fromRows,
  type GateContext,
  orderTokens,
  toRows,
  type WeightNormalisation,
} from "../src/index.ts";
import { rowsOf } from "../src/rows.ts";
import { choicesOf, counting, type GateDecisions, routings, weightsOf } from "./routings.ts";
import { runRanks } from "./world.ts";

interface Entry {
  readonly token: number;
  readonly choice: number;
  readonly expert: number;
  readonly weight: number;
}

const entriesOf = ({ choices, weights }: GateDecisions): Entry[] =>
  choices.flatMap((own, token) =>
    own.map((expert, choice) => ({ token, choice, expert, weight: weights[token]![choice]! })),
  );

/** Comparison function for entries. Sorts are stable, so equal entries stay in the order of tokens and choices. */
type Compare = (a: Entry, b: Entry, routing: GateDecisions) => number;

const greatestOf = ({ weights }: GateDecisions, { token }: Entry): number => Math.max(...weights[token]!);

const dropOrders: readonly { readonly name: string; readonly dropOrder: DropOrder; readonly compare: Compare }[] = [
  { name: "byToken", dropOrder: byToken, compare: () => 0 },
  { name: "byChoice", dropOrder: byChoice, compare: (a, b) => a.choice - b.choice },
  { name: "byProbability", dropOrder: byProbability, compare: (a, b) => b.weight - a.weight },
  {
    name: "byBatchPriority",
    dropOrder: byBatchPriority,
    compare: (a, b, routing) => a.choice - b.choice || greatestOf(routing, b) - greatestOf(routing, a),
  },
];

/** Returns, for each expert, its entries with a slot, in slot order. */
const keptBy = (routing: GateDecisions, slots: number, compare: Compare): Entry[][] => {
  const inLine = entriesOf(routing).toSorted((a, b) => compare(a, b, routing));
  return Array.from({ length: routing.numExperts }, (_, expert) =>
    inLine.filter((entry) => entry.expert === expert).slice(0, slots),
  );
};

const weightsAfter = (
  routing: GateDecisions,
  kept: readonly Entry[][],
  normalisation: WeightNormalisation,
): number[][] => {
  const isKept = (token: number, choice: number): boolean =>
    kept.flat().some((entry) => entry.token === token && entry.choice === choice);
  return routing.weights.map((own, token) => {
    const chosen = own.map((weight, choice) => (routing.choices[token]![choice] === -1 ? 0 : weight));
    const counted = chosen.map((weight, choice) =>
      normalisation === "after-dropping" && !isKept(token, choice) ? 0 : weight,
    );
    const total = normalisation === "none" ? 1 : counted.reduce((sum, weight) => sum + weight, 0);
    return counted.map((weight) => (total === 0 ? 0 : Math.fround(weight / total)));
  });
};

interface Setting {
  readonly routing: GateDecisions;
  readonly slots: number;
  readonly normalisation: WeightNormalisation;
}

/** Generates routings with a number of slots: random, or the load of the first expert, one less or one more. */
const settings = routings().chain((routing) => {
  const load = routing.choices.flat().filter((expert) => expert === 0).length;
  return fc.record({
    routing: fc.constant(routing),
    slots: fc.oneof(
      fc.integer({ min: 1, max: 8 }),
      fc.constantFrom(Math.max(1, load - 1), Math.max(1, load), load + 1),
    ),
    normalisation: fc.constantFrom<WeightNormalisation>("none", "before-dropping", "after-dropping"),
  });
});

const width = 2;

/**
 * Runs the ordering stage and its inverse, with identity experts. Returns a function of the choices, weights, tokens
 * and key.
 */
const run = (
  { routing, slots, normalisation }: Setting,
  dropOrder: DropOrder,
  contextOf = (key: Tensor): Pick<GateContext, "train" | "key"> => ({ train: true, key }),
) => {
  const numTokens = routing.choices.length;
  const fn = (choices_TK: Tensor, weights_TK: Tensor, x_TD: Tensor, key: Tensor) => {
    const choices: ExpertChoices = { kind: "choices", choices_TK, weights_TK };
    const order = orderTokens(choices, {
      numExperts: routing.numExperts,
      capacity: { slots, overflow: "drop", dropOrder },
      normalisation,
      context: contextOf(key),
    });
    const firstRow_E = multiply(arange(routing.numExperts), slots);
    const rows = assignRows(rowsOf(order, firstRow_E), order.weights_TK, routing.numExperts * slots);
    return { order: { ...order, ...rows }, y: fromRows(toRows(x_TD, rows), rows, numTokens) };
  };
  const x = counting([numTokens, width]);
  const [result] = runRanks(fn, [
    [choicesOf(routing), weightsOf(routing), x, NdArray.from([1, 2], [2], "u32")] as never,
  ]) as unknown as [{ readonly order: Readonly<Record<string, NdArray>>; readonly y: NdArray }];
  const numbers = Object.fromEntries(Object.entries(result.order).map(([name, array]) => [name, array.toNumbers()]));
  return { x: x.toNumbers(), y: result.y.toNumbers(), order: numbers };
};

describe.each(dropOrders)("$name", ({ dropOrder, compare }) => {
  test("the first entries get slots: each slot holds one choice, each choice has at most one slot", () => {
    fc.assert(
      fc.property(settings, (setting) => {
        const { routing, slots, normalisation } = setting;
        const { order } = run(setting, dropOrder);
        const kept = keptBy(routing, slots, compare);
        const weights = weightsAfter(routing, kept, normalisation);
        const rows = kept.flatMap((entries) => [...entries, ...new Array<undefined>(slots - entries.length)]);
        expect(order["tokens_R"]).toEqual(rows.map((entry) => entry?.token ?? -1));
        order["weights_R"]!.forEach((weight, row) => {
          const entry = rows[row];
          expect(weight).toBeCloseTo(entry === undefined ? 0 : weights[entry.token]![entry.choice]!, 6);
        });
        const loads = Array.from(
          { length: routing.numExperts },
          (_, expert) => routing.choices.flat().filter((own) => own === expert).length,
        );
        const slotOf = new Map(
          kept.flatMap((own) => own.map(({ token, choice }, slot) => [`${token},${choice}`, slot])),
        );
        const ofEntries = <T>(of: (token: number, choice: number) => T): T[] =>
          routing.choices.flatMap((own, token) => own.map((_, choice) => of(token, choice)));
        const expectedSlots = ofEntries((token, choice) => slotOf.get(`${token},${choice}`) ?? -1);
        expect(order["slots_TK"]).toEqual(expectedSlots);
        const expectedExperts = ofEntries((token, choice) => routing.choices[token]![choice]!);
        expect(order["experts_TK"]).toEqual(
          expectedExperts.map((expert, i) => (expectedSlots[i] === -1 ? -1 : expert)),
        );
        order["weights_TK"]!.forEach((weight, i) => expect(expectedSlots[i] === -1 && weight !== 0).toBe(false));
        expect(order["kept_E"]).toEqual(kept.map((entries) => entries.length));
        expect(order["greatestLoad"]).toEqual([Math.max(...loads)]);
      }),
      { numRuns: examples(60, 1000) },
    );
  });

  test("order and inverse order multiply each token by the sum of its remaining weights", () => {
    fc.assert(
      fc.property(settings, (setting) => {
        const { x, y } = run(setting, dropOrder);
        const kept = keptBy(setting.routing, setting.slots, compare);
        const weights = weightsAfter(setting.routing, kept, setting.normalisation);
        const total = new Array<number>(setting.routing.choices.length).fill(0);
        for (const { token, choice } of kept.flat()) total[token]! += weights[token]![choice]!;
        y.forEach((value, i) => expect(value).toBeCloseTo(x[i]! * total[Math.floor(i / width)]!, 4));
      }),
      { numRuns: examples(40, 500) },
    );
  });
});

test("nothing is dropped from f = E / K on, for any choices: as many slots as tokens", () => {
  fc.assert(
    fc.property(routings(), fc.constantFrom(byToken, byRandomOrder, byProbability), (routing, dropOrder) => {
      const { order } = run({ routing, slots: routing.choices.length, normalisation: "none" }, dropOrder);
      const load = (expert: number): number => routing.choices.flat().filter((own) => own === expert).length;
      expect(order["kept_E"]).toEqual(Array.from({ length: routing.numExperts }, (_, expert) => load(expert)));
    }),
    { numRuns: examples(40, 500) },
  );
});

test("random order keeps as many entries as any other order, first choices before second choices, and varies the tokens", () => {
  const choices = Array.from({ length: 12 }, (_, token) => [token % 2, 1 - (token % 2)]);
  const routing = { numExperts: 2, numChoices: 2, choices, weights: choices.map(() => [0.5, 0.25]) };
  const { order } = run({ routing, slots: 6, normalisation: "none" }, byRandomOrder);
  expect(order["kept_E"]).toEqual([6, 6]);
  expect(order["weights_R"]).toEqual(new Array(12).fill(0.5));
  expect(order["tokens_R"]!.slice(0, 6).toSorted((a, b) => a - b)).toEqual([0, 2, 4, 6, 8, 10]);
  expect(order["tokens_R"]!.slice(0, 6)).not.toEqual([0, 2, 4, 6, 8, 10]);
  // Outside of training there is no key, and the order is the same every time.
  const setting = { routing, slots: 6, normalisation: "none" } as const;
  const [still, again] = [0, 1].map(() => run(setting, byRandomOrder, () => ({ train: false })).order["tokens_R"]!);
  expect(still).toEqual(again);
  expect(still!.slice(0, 6).toSorted((a, b) => a - b)).toEqual([0, 2, 4, 6, 8, 10]);
  expect(() => run(setting, byRandomOrder, () => ({ train: true }))).toThrow(
    /byRandomOrder: .* the step passed no key/,
  );
});

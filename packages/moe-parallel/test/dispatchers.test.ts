import { examples } from "@skein/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  denseDispatcher,
  duplicateFreeDispatcher,
  hierarchicalDispatcher,
  raggedDispatcher,
  type TokenDispatcher,
} from "../src/index.ts";
import {
  type Arrival,
  entriesOf,
  type Entry,
  type DispatchCase,
  dispatchCases,
  listsOf,
  scaleOf,
  travel,
} from "./dispatched.ts";
import type { GateDecisions } from "./routings.ts";

interface Row {
  readonly name: string;
  readonly dispatcher: (levels: readonly string[]) => TokenDispatcher;
  /** Items that are split into chunks: the slots of each expert, or the rank's tokens. */
  readonly cuts: "slots" | "tokens";
}

const dispatchers: readonly Row[] = [
  { name: "denseDispatcher", dispatcher: () => denseDispatcher(), cuts: "slots" },
  { name: "raggedDispatcher", dispatcher: () => raggedDispatcher(), cuts: "tokens" },
  {
    name: "hierarchicalDispatcher",
    dispatcher: (axes) => hierarchicalDispatcher({ axes }),
    cuts: "tokens",
  },
  {
    name: "duplicateFreeDispatcher",
    dispatcher: (axes) => duplicateFreeDispatcher({ axes }),
    cuts: "tokens",
  },
];

const meshes = [[1], [2], [3], [2, 2], [4], [3, 2], [1, 2], [2, 1], [2, 2, 2]];

/** Splits 0 … count − 1 into equal ranges; the last range may be smaller. */
const partsOf = (count: number, numChunks: number): { readonly begin: number; readonly end: number }[] => {
  const parts: { begin: number; end: number }[] = [];
  const size = Math.ceil(count / numChunks);
  for (let begin = 0; begin < count; begin += size) parts.push({ begin, end: Math.min(begin + size, count) });
  return parts;
};

const numRanksOf = ({ ranks }: DispatchCase): number => ranks.length;

describe.each(dispatchers)("$name", ({ dispatcher, cuts }) => {
  const arrive = (route: DispatchCase): Arrival[] =>
    travel(route, dispatcher(route.levels.map((_, i) => `level-${i}`)));

  test("an expert receives exactly the bits that all ranks send to it, by rank and slot, without lost or additional rows", () => {
    fc.assert(
      fc.property(dispatchCases(meshes), (route) => {
        const arrivals = arrive(route);
        const entries = entriesOf(arrivals);
        const { numExperts, choices } = route.ranks[0]!;
        const each = numExperts / numRanksOf(route);
        const tokens = arrivals.map(({ x }) => listsOf(x));
        const parts = partsOf(cuts === "slots" ? route.slots : choices.length, route.numChunks);
        arrivals.forEach(({ chunks }, rank) => {
          expect(chunks).toHaveLength(parts.length);
          chunks.forEach(({ rows_SD, counts_e }, i) => {
            const { begin, end } = parts[i]!;
            const expected = Array.from({ length: each }, (_, own) => {
              const expert = rank * each + own;
              return arrivals.flatMap((_source, source) => {
                const ofSource = entries.filter((entry) => entry.rank === source && entry.expert === expert);
                const rowOf = ({ token }: Entry): number[] => tokens[source]![token]!;
                if (cuts === "tokens")
                  return ofSource
                    .filter(({ token }) => token >= begin && token < end)
                    .toSorted((a, b) => a.slot - b.slot)
                    .map(rowOf);
                const bySlot = new Map(ofSource.map((entry) => [entry.slot, rowOf(entry)]));
                return Array.from({ length: end - begin }, (_slot, slot) => bySlot.get(begin + slot) ?? [0, 0]);
              });
            });
            const rows = listsOf(rows_SD);
            expect(counts_e.toNumbers()).toEqual(expected.map((own) => own.length));
            expect(rows.slice(0, expected.flat().length)).toEqual(expected.flat());
            expect(
              rows
                .slice(expected.flat().length)
                .flat()
                .every((value) => value === 0),
            ).toBe(true);
          });
        });
      }),
      { numRuns: examples(60, 300) },
    );
  });

  test("a token gets the weighted sum of its experts' outputs, and gradients are those of that sum", () => {
    fc.assert(
      fc.property(dispatchCases(meshes), (route) => {
        const arrivals = arrive(route);
        const entries = entriesOf(arrivals);
        const { numChoices } = route.ranks[0]!;
        arrivals.forEach(({ y, x, cotangent, xGradient, weightsGradient, order }, rank) => {
          const [tokens, cotangents] = [listsOf(x), listsOf(cotangent)];
          // All numbers are small multiples of 1/8, whose sums and products are exact in any order.
          const factors = tokens.map(() => 0);
          for (const { token, expert, weight } of entries.filter((entry) => entry.rank === rank))
            factors[token]! += weight * scaleOf(expert);
          expect(listsOf(y)).toEqual(tokens.map((row, token) => row.map((value) => value * factors[token]!)));
          expect(listsOf(xGradient)).toEqual(
            cotangents.map((row, token) => row.map((value) => value * factors[token]!)),
          );
          const products = tokens.map((row, token) =>
            row.reduce((total, value, i) => total + value * cotangents[token]![i]!, 0),
          );
          expect(weightsGradient.toNumbers()).toEqual(
            order.experts_TK
              .toNumbers()
              .map((expert, i) => (expert === -1 ? 0 : scaleOf(expert) * products[Math.floor(i / numChoices)]!)),
          );
        });
      }),
      { numRuns: examples(60, 300) },
    );
  });
});

test("rows beyond the capacity of raggedDispatcher fail the run with a message that names rank, count and capacity", () => {
  const routing: GateDecisions = { numExperts: 2, numChoices: 1, choices: [[1], [1], [0]], weights: [[1], [1], [1]] };
  const few: DispatchCase = {
    levels: [2],
    slots: 3,
    numChunks: 1,
    ranks: [routing, { ...routing, choices: [[1], [1], [1]] }],
  };
  const bounded = (rowsPerRank: number): TokenDispatcher => raggedDispatcher({ rowsPerRank });
  expect(() => travel(few, bounded(3))).not.toThrow();
  expect(() => travel(few, bounded(2))).toThrow(
    /rank 1 is asked to send 3 rows to rank 1, but its chunks have 2; count 0 to 2 rows, or raise the capacity/,
  );
  expect(() => raggedDispatcher({ rowsPerRank: 0 })).toThrow(/rowsPerRank is 0; use a whole number from 1/);
});

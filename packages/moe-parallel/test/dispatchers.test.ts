import { multiply, type NdArray, type Tensor } from "@skein/tensor-core";
import { examples } from "@skein/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  byChoice,
  denseDispatcher,
  type DispatchSizes,
  orderTokens,
  raggedDispatcher,
  toRows,
  type TokenDispatcher,
} from "../src/index.ts";
import { choicesOf, counting, type Routing, routings, weightsOf } from "./routings.ts";
import { runRanks } from "./world.ts";

const dispatchers: readonly {
  readonly name: string;
  readonly dispatcher: TokenDispatcher;
  readonly packed: boolean;
}[] = [
  { name: "denseDispatcher", dispatcher: denseDispatcher() as TokenDispatcher, packed: false },
  { name: "raggedDispatcher", dispatcher: raggedDispatcher() as TokenDispatcher, packed: true },
];

interface Setting {
  readonly numRanks: number;
  readonly slots: number;
  readonly ranks: readonly Routing[];
}

const settings: fc.Arbitrary<Setting> = fc
  .record({
    numRanks: fc.constantFrom(1, 2, 3, 4),
    each: fc.integer({ min: 1, max: 2 }),
    numTokens: fc.integer({ min: 1, max: 5 }),
    slots: fc.integer({ min: 1, max: 5 }),
  })
  .chain(({ numRanks, each, numTokens, slots }) =>
    fc.record({
      numRanks: fc.constant(numRanks),
      slots: fc.constant(Math.min(slots, numTokens)),
      ranks: fc
        .array(routings({ numExperts: fc.constant(numRanks * each), numTokens: fc.constant(numTokens) }), {
          minLength: numRanks,
          maxLength: numRanks,
        })
        // All ranks have as many choices, as one gate gives them.
        .map((ranks) => {
          const numChoices = Math.min(...ranks.map((own) => own.numChoices));
          return ranks.map((own) => ({
            ...own,
            numChoices,
            choices: own.choices.map((list) => list.slice(0, numChoices)),
            weights: own.weights.map((list) => list.slice(0, numChoices)),
          }));
        }),
    }),
  );

interface RankRows {
  readonly sent: NdArray;
  readonly tokens: NdArray;
  readonly kept: NdArray;
  readonly seen: NdArray;
  readonly counts: NdArray;
  readonly back: NdArray;
}

/** Rows there, three times as much, and back. */
const run = ({ slots, ranks }: Setting, dispatcher: TokenDispatcher): RankRows[] => {
  const { numExperts, numChoices, choices } = ranks[0]!;
  const sizes: DispatchSizes = { numExperts, numChoices, numTokens: choices.length, slots, axis: "expert" };
  const fn = (choices_TK: Tensor, weights_TK: Tensor, x_TD: Tensor) => {
    const order = orderTokens(
      { kind: "choices", choices_TK, weights_TK },
      {
        numExperts,
        capacity: { slots, overflow: "drop", dropOrder: byChoice },
        normalisation: "none",
        layout: (kept_E) => dispatcher.layout(kept_E, sizes),
        context: {},
      },
    );
    const sent = toRows(x_TD, order);
    const { rows_SD, counts_e, metadata } = dispatcher.dispatch(sent, order.kept_E, sizes);
    const back = dispatcher.combine(multiply(rows_SD, 3), metadata, sizes);
    return { sent, tokens: order.tokens_R, kept: order.kept_E, seen: rows_SD, counts: counts_e, back };
  };
  return runRanks(
    fn,
    ranks.map((own, rank) => [choicesOf(own), weightsOf(own), counting([choices.length, 1], rank)] as never),
  ) as never;
};

describe.each(dispatchers)("$name", ({ dispatcher, packed }) => {
  test("what all ranks send an expert is what it sees, by rank, and what comes home is each rank's own", () => {
    fc.assert(
      fc.property(settings, (setting) => {
        const { numRanks, ranks } = setting;
        const results = run(setting, dispatcher);
        const { numExperts } = ranks[0]!;
        const each = numExperts / numRanks;
        // Rows that each rank means for each expert, by the layout's own promise: those of an expert side by side.
        const meant = results.map(({ sent, tokens, kept }) => {
          const full = tokens.toNumbers().flatMap((token, row) => (token === -1 ? [] : [sent.toNumbers()[row]!]));
          const counts = kept.toNumbers();
          expect(full).toHaveLength(counts.reduce((sum, count) => sum + count, 0));
          return counts.map((count) => full.splice(0, count));
        });
        results.forEach(({ seen, counts, sent, back }, rank) => {
          let begin = 0;
          counts.toNumbers().forEach((count, own) => {
            const rows = seen.toNumbers().slice(begin, begin + count);
            const wanted = meant.flatMap((byExpert) => byExpert[rank * each + own]!);
            expect(packed ? rows : rows.filter((value) => value !== 0)).toEqual(wanted);
            begin += count;
          });
          expect(
            seen
              .toNumbers()
              .slice(begin)
              .every((value) => value === 0),
          ).toBe(true);
          expect(back.toNumbers()).toEqual(sent.toNumbers().map((value) => 3 * value));
        });
      }),
      { numRuns: examples(60, 600) },
    );
  });
});

test("rows beyond the room between two ranks fail the run, and the message names rank, count and room", () => {
  const routing: Routing = {
    numExperts: 2,
    numChoices: 1,
    choices: [[1], [1], [0]],
    weights: [[1], [1], [1]],
  };
  const few = { numRanks: 2, slots: 3, ranks: [routing, { ...routing, choices: [[1], [1], [1]] }] };
  const bounded = (rowsPerRank: number): TokenDispatcher => raggedDispatcher({ rowsPerRank }) as TokenDispatcher;
  expect(() => run(few, bounded(3))).not.toThrow();
  expect(() => run(few, bounded(2))).toThrow(
    /rank 1 is asked to send 3 rows to rank 1, but its chunks have 2; count 0 to 2 rows, or raise the capacity/,
  );
  expect(() => raggedDispatcher({ rowsPerRank: 0 })).toThrow(/rowsPerRank is 0; use a whole number from 1/);
});

import {
  add,
  adamw,
  applyUpdates,
  multiply,
  NdArray,
  square,
  sum,
  type Tensor,
  valueAndGradWithAux,
} from "@skein/tensor-core";
import { examples } from "@skein/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  capacityByFactor,
  geluExperts,
  moeLayer,
  raggedDispatcher,
  sigmoidGate,
  softGate,
  switchGate,
} from "../src/index.ts";
import { maxMovesPerPair, moveExperts } from "../src/placement.ts";
import { keyOf, tokensOf, width } from "./tokens.ts";
import { joined, partsOf, runRanks } from "./world.ts";

const i32 = (numbers: readonly number[]): NdArray => NdArray.from([...numbers], [numbers.length], "i32");

const placesOf = (numExperts: number): fc.Arbitrary<number[]> => {
  const all = Array.from({ length: numExperts }, (_, expert) => expert);
  return fc.oneof(
    fc.shuffledSubarray(all, { minLength: numExperts }),
    // Rotate all experts to the next rank, or to the last rank first.
    fc.nat(numExperts).map((by) => all.map((expert) => (expert + by) % numExperts)),
    fc.constant(all.toReversed()),
  );
};

interface Places {
  readonly numRanks: number;
  readonly all: readonly number[][];
}

const places = (count: number): fc.Arbitrary<Places> =>
  fc.tuple(fc.constantFrom(1, 2, 3, 4), fc.integer({ min: 1, max: 3 })).chain(([numRanks, each]) =>
    fc.record({
      numRanks: fc.constant(numRanks),
      all: fc.array(placesOf(numRanks * each), { minLength: count, maxLength: count }),
    }),
  );

/**
 * Returns the experts' tensors on each rank, stacked by position, with values that identify the expert. The values
 * include a NaN and a negative zero.
 */
const rowsAt = (placeOf: readonly number[], numRanks: number) => {
  const expertAt = placeOf.map((_, place) => placeOf.indexOf(place));
  const of = (perExpert: (expert: number) => number[], shape: number[], dtype: "f32" | "i32"): NdArray[] =>
    partsOf(NdArray.from(expertAt.flatMap(perExpert), [placeOf.length, ...shape], dtype), numRanks);
  const [up, moment, count] = [
    of((expert) => [expert, -0, NaN, expert / 3, 1e-42, -expert], [2, 3], "f32"),
    of((expert) => [100 + expert], [], "f32"),
    of((expert) => [7 * expert, -1], [2, 1], "i32"),
  ] as const;
  return Array.from({ length: numRanks }, (_, rank) => ({
    up: up[rank]!,
    optimizer: [{ moment: moment[rank]! }, count[rank]!],
  }));
};

type Rows = ReturnType<typeof rowsAt>[number];

const moved = (rows: readonly Rows[], before: readonly number[], after: readonly number[], room?: number): Rows[] =>
  runRanks(
    ((tree: never, before_E: Tensor, after_E: Tensor) =>
      moveExperts(tree, { before_E, after_E, ...(room !== undefined && { room }) })) as never,
    rows.map((own) => [own, i32(before), i32(after)] as const) as never,
  ) as never;

describe("moveExperts", () => {
  test("an expert's rows follow it bit for bit, in both directions, with no more room than the busiest pair needs", () => {
    fc.assert(
      fc.property(places(3), fc.boolean(), ({ numRanks, all: [a, b, c] }, isExact) => {
        const roomOf = (before: number[], after: number[]): number | undefined =>
          isExact ? Math.max(1, maxMovesPerPair(before, after, numRanks)) : undefined;
        const start = rowsAt(a!, numRanks);
        const there = moved(start, a!, b!, roomOf(a!, b!));
        expect(there).toEqual(rowsAt(b!, numRanks));
        const further = moved(there, b!, c!, roomOf(b!, c!));
        expect(further).toEqual(rowsAt(c!, numRanks));
        expect(moved(moved(further, c!, b!), b!, a!)).toEqual(start);
      }),
      { numRuns: examples(30, 300) },
    );
  });

  test("rejects less room than needed, before anything is lost", () => {
    const [before, after] = [
      [0, 1, 2, 3, 4, 5],
      [3, 4, 2, 0, 1, 5],
    ];
    expect(maxMovesPerPair(before!, after!, 2)).toBe(2);
    expect(() => moved(rowsAt(before!, 2), before!, after!, 1)).toThrow(/raggedAllToAll|ragged-all-to-all/);
    expect(moved(rowsAt(before!, 2), before!, after!, 2)).toEqual(rowsAt(after!, 2));
  });

  test("rejects tensors without one row per expert, and an invalid room", () => {
    const rows = [{ up: NdArray.zeros("f32", [3, 2]), optimizer: [] }] as never;
    expect(() => moved(rows, [0, 1], [1, 0])).toThrow(
      /moveExperts: "up" is \[3, 2\], but a rank has 2 experts; give tensors with one row per expert/,
    );
    expect(() => moved(rowsAt([0, 1], 1), [0, 1], [1, 0], 0)).toThrow(/moveExperts: room is 0/);
    expect(() => maxMovesPerPair([0, 1], [0, 0], 2)).toThrow(/is not a permutation of 2 positions/);
    expect(() => maxMovesPerPair([0, 1], [0, 1, 2, 3], 2)).toThrow(/positions of 2 experts before and of 4 after/);
  });
});

const numExperts = 4;
const gates = [
  { name: "switchGate", gate: switchGate({ width, numExperts }), sameBits: true },
  { name: "sigmoidGate", gate: sigmoidGate({ width, numExperts, numChoices: 2 }), sameBits: true },
  { name: "sigmoidGate of three", gate: sigmoidGate({ width, numExperts, numChoices: 3 }), sameBits: false },
  { name: "softGate", gate: softGate({ width, numExperts }), sameBits: false },
] as const;

interface Trained {
  readonly params: { readonly gate: object; readonly experts: Readonly<Record<string, NdArray>> };
  readonly optimizer: unknown;
  readonly state: { readonly placeOf_E: NdArray };
  readonly loss: NdArray;
}

describe.each(gates)("$name", ({ gate, sameBits }) => {
  const layer = moeLayer<unknown, unknown, unknown>({
    gate: gate as never,
    experts: geluExperts({ width, hidden: 4, deviation: 0.7, outputDeviation: 0.7 }) as never,
    capacity: capacityByFactor({ factor: 0.75 }),
    dispatcher: raggedDispatcher() as never,
  });
  const rule = adamw({ learningRate: 0.05 });

  const init = (key: Tensor) => {
    const { params, state } = layer.init(key);
    return { params, optimizer: rule.init(params), state, loss: sum(key as never) };
  };
  const step = ({ params, optimizer, state }: ReturnType<typeof init>, x: Tensor) => {
    const [loss, next, gradients] = valueAndGradWithAux((own: typeof params) => {
      const [y, after, report] = layer.apply(own, state, x, { train: true });
      return [add(sum(square(multiply(y, add(x, 1)))), report.loss), after] as const;
    })(params);
    const [updates, kept] = rule.update(gradients, optimizer, { params });
    return { params: applyUpdates(params, updates), optimizer: kept, state: next, loss };
  };
  const move = (own: ReturnType<typeof init>, after_E: Tensor) => {
    const { params, state } = own;
    const [moments, ...others] = own.optimizer;
    const of = ({ mean, square: squares }: typeof moments) =>
      [mean as unknown as typeof params, squares as unknown as typeof params] as const;
    const [mean, squares] = of(moments);
    const rows = moveExperts([params.experts, mean.experts, squares.experts] as const, {
      before_E: state.placeOf_E,
      after_E,
    });
    return {
      ...own,
      params: { ...params, experts: rows[0] },
      optimizer: [
        { ...moments, mean: { ...mean, experts: rows[1] }, square: { ...squares, experts: rows[2] } },
        ...others,
      ],
      state: { ...state, placeOf_E: after_E },
    };
  };

  /** Returns the rows of each expert in the order of expert numbers, for any placement. */
  const byExpert = (ranks: readonly Trained[]): NdArray[] =>
    Object.keys(ranks[0]!.params.experts).flatMap((name) => {
      const rows = partsOf(joined(ranks.map(({ params }) => params.experts[name]!)), numExperts);
      return ranks[0]!.state.placeOf_E.toNumbers().map((place) => rows[place]!);
    });

  test(`experts that move in training change ${sameBits ? "no bit" : "nothing beyond rounding"} of loss and updates`, () => {
    fc.assert(
      fc.property(
        fc.constantFrom(1, 2, 4),
        fc.array(tokensOf(8), { minLength: 4, maxLength: 4 }),
        fc.array(fc.option(placesOf(numExperts)), { minLength: 4, maxLength: 4 }),
        (numRanks, batches, moves) => {
          const ranks = Array.from({ length: numRanks }, () => [keyOf(3)] as const);
          const initial = runRanks(init as never, ranks as never) as unknown as Trained[];
          let [still, moving] = [initial, initial];
          batches.forEach((x, i) => {
            const parts = partsOf(x, numRanks);
            const stepped = (all: readonly Trained[]): Trained[] =>
              runRanks(step as never, all.map((own, rank) => [own, parts[rank]!]) as never) as never;
            [still, moving] = [stepped(still), stepped(moving)];
            for (const [rank, { loss }] of still.entries()) {
              const got = moving[rank]!.loss.item();
              if (sameBits) expect(got).toBe(loss.item());
              else expect(Math.abs(got - loss.item())).toBeLessThanOrEqual(1e-4 * Math.max(1, Math.abs(loss.item())));
            }
            const after = moves[i];
            if (after !== null && after !== undefined)
              moving = runRanks(move as never, moving.map((own) => [own, i32(after)]) as never) as never;
          });
          const expected = byExpert(still);
          byExpert(moving).forEach((rows, i) => {
            const [got, want] = [rows.toNumbers(), expected[i]!.toNumbers()];
            if (sameBits) expect(got).toEqual(want);
            else got.forEach((value, n) => expect(Math.abs(value - want[n]!)).toBeLessThan(1e-3));
          });
        },
      ),
      { numRuns: examples(6, 60) },
    );
  });
});

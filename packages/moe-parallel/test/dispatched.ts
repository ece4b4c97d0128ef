import {
  arange,
  groupedMatmul,
  less,
  multiply,
  NdArray,
  reshape,
  sum,
  type Tensor,
  valueAndGradWithAux,
  where,
} from "@skein/tensor-core";
import fc from "fast-check";
import { byChoice, type DispatchSizes, type Order, orderTokens, type TokenDispatcher } from "../src/index.ts";
import { choicesOf, counting, type GateDecisions, routings, weightsOf } from "./routings.ts";
import { levelsOf, runRanks } from "./world.ts";

/** Test case for a dispatcher: the mesh, the sizes, and each rank's routing. */
export interface DispatchCase {
  /** Sizes of the mesh axes of the ranks, outermost axis first. */
  readonly levels: readonly number[];
  readonly slots: number;
  readonly numChunks: number;
  /** Routing decisions of each rank's gate. */
  readonly ranks: readonly GateDecisions[];
}

/**
 * Generates test cases for dispatchers on meshes of one to three levels, some with one rank, some not square, with
 * arbitrary ragged loads.
 */
export const dispatchCases = (levels: readonly (readonly number[])[]): fc.Arbitrary<DispatchCase> =>
  fc
    .record({
      levels: fc.constantFrom(...levels),
      each: fc.integer({ min: 1, max: 2 }),
      numTokens: fc.integer({ min: 1, max: 5 }),
      slots: fc.integer({ min: 1, max: 5 }),
      numChunks: fc.constantFrom(1, 1, 2, 4),
    })
    .chain(({ levels: sizes, each, numTokens, slots, numChunks }) => {
      const numRanks = sizes.reduce((product, size) => product * size, 1);
      return fc.record({
        levels: fc.constant(sizes),
        slots: fc.constant(Math.min(slots, numTokens)),
        numChunks: fc.constant(numChunks),
        ranks: fc
          .array(routings({ numExperts: fc.constant(numRanks * each), numTokens: fc.constant(numTokens) }), {
            minLength: numRanks,
            maxLength: numRanks,
          })
          // All ranks have the same number of choices, because a single gate decides.
          .map((ranks) => {
            const numChoices = Math.min(...ranks.map((own) => own.numChoices));
            return ranks.map((own) => ({
              ...own,
              numChoices,
              choices: own.choices.map((list) => list.slice(0, numChoices)),
              weights: own.weights.map((list) => list.slice(0, numChoices)),
            }));
          }),
      });
    });

/** Inputs, received rows and results of one rank in a dispatch. */
export interface Arrival {
  readonly order: { readonly [name in keyof Order]: NdArray };
  readonly chunks: readonly { readonly rows_SD: NdArray; readonly counts_e: NdArray }[];
  readonly metadata: unknown;
  readonly y: NdArray;
  readonly x: NdArray;
  readonly cotangent: NdArray;
  readonly xGradient: NdArray;
  readonly weightsGradient: NdArray;
}

/** An entry (one choice of a token) that has a slot. */
export interface Entry {
  readonly rank: number;
  readonly token: number;
  readonly expert: number;
  readonly slot: number;
  readonly weight: number;
}

/** Returns the entries with a slot of all ranks, in rank order. */
export const entriesOf = (arrivals: readonly Arrival[]): Entry[] =>
  arrivals.flatMap(({ order }, rank) => {
    const numChoices = order.experts_TK.shape[1]!;
    const [slots, weights] = [order.slots_TK.toNumbers(), order.weights_TK.toNumbers()];
    return order.experts_TK
      .toNumbers()
      .map((expert, i) => ({ rank, token: Math.floor(i / numChoices), expert, slot: slots[i]!, weight: weights[i]! }))
      .filter(({ expert }) => expert !== -1);
  });

const width = 2;

/** Returns the factor by which the expert at position `place` multiplies its input. */
export const scaleOf = (place: number): number => 1 + (place % 5);

/** Returns the weight matrix of each expert of a rank: a multiple of the identity. */
const scalesOf = (rank: number, each: number): NdArray =>
  NdArray.from(
    Array.from({ length: each }, (_, own) => scaleOf(rank * each + own)).flatMap((scale) => [scale, 0, 0, scale]),
    [each, width, width],
    "f32",
  );

/** Returns the rows of an array as lists of numbers. */
export const listsOf = (array: NdArray): number[][] => {
  const [numRows, rowWidth] = [array.shape[0]!, array.toNumbers().length / array.shape[0]!];
  const numbers = array.toNumbers();
  return Array.from({ length: numRows }, (_, row) => numbers.slice(row * rowWidth, (row + 1) * rowWidth));
};

/**
 * Dispatches tokens to experts, and combines the results. Each expert multiplies by a different factor, and writes NaN
 * after its rows. Returns, per rank, the outputs and the gradients of tokens and weights.
 */
export const travel = ({ levels, slots, numChunks, ranks }: DispatchCase, dispatcher: TokenDispatcher): Arrival[] => {
  const { numExperts, numChoices, choices } = ranks[0]!;
  const each = numExperts / ranks.length;
  const numTokens = choices.length;
  const sizes: DispatchSizes = { numExperts, numChoices, numTokens, slots, axis: "expert", numChunks };
  const fn = (choices_TK: Tensor, weights_TK: Tensor, x_TD: Tensor, cotangent_TD: Tensor, scales_eDD: Tensor) => {
    const loss = ({ x, weights }: { readonly x: Tensor; readonly weights: Tensor }) => {
      const order = orderTokens(
        { kind: "choices", choices_TK, weights_TK: weights },
        {
          numExperts,
          capacity: { slots, overflow: "drop", dropOrder: byChoice },
          normalisation: "none",
          context: { train: false },
        },
      );
      const { chunks, metadata } = dispatcher.dispatch(x, order, sizes);
      const done = chunks.map(({ rows_SD, counts_e }) => {
        const isRow = less(arange(rows_SD.shape[0]!), sum(counts_e));
        return where(reshape(isRow, [-1, 1]), groupedMatmul(rows_SD, scales_eDD, counts_e), NaN);
      });
      const y = dispatcher.combine(done, metadata, sizes);
      return [sum(multiply(y, cotangent_TD)), { order, chunks, metadata, y }] as const;
    };
    const [, aux, gradients] = valueAndGradWithAux(loss)({ x: x_TD, weights: weights_TK });
    return {
      ...aux,
      x: x_TD,
      cotangent: cotangent_TD,
      xGradient: gradients.x,
      weightsGradient: gradients.weights,
    };
  };
  return runRanks(
    fn,
    ranks.map((own, rank) => [
      choicesOf(own),
      weightsOf(own),
      counting([numTokens, width], rank),
      counting([numTokens, width], rank + 3),
      scalesOf(rank, each),
    ]) as never,
    levelsOf(levels),
  ) as never;
};

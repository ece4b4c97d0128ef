import {
  allGather,
  allToAll,
  broadcastTo,
  multiply,
  NdArray,
  reduceScatter,
  reshape,
  sum,
  type Tensor,
  trace,
  valueAndGrad,
} from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import { examples } from "@skein/testing";
import fc from "fast-check";
import { expect, test } from "vitest";
import { exchangeAndGather } from "../src/dispatch/exchange-and-gather.ts";
import { runRanks } from "./world.ts";

const whole = "expert-shards";
const width = 2;

const settings = fc
  .record({
    numRanks: fc.integer({ min: 1, max: 3 }),
    numGathering: fc.integer({ min: 1, max: 3 }),
    rows: fc.integer({ min: 1, max: 5 }),
    numPieces: fc.integer({ min: 1, max: 6 }),
    adds: fc.boolean(),
  })
  .map((setting) => ({ ...setting, all: setting.numRanks * setting.numGathering }));
type Setting = typeof settings extends fc.Arbitrary<infer T> ? T : never;

const optionsOf = ({ numPieces, numGathering, adds }: Setting) =>
  ({ axis: whole, gatherAxis: "tensor", numSummands: adds ? numGathering : 1, numPieces }) as const;

/** Returns integers that identify rank and index, and have exact sums. */
const numbersOf = (rank: number, count: number, factor: number): NdArray =>
  NdArray.from(
    Array.from({ length: count }, (_, i) => ((factor * (i + 1) + 31 * rank) % 97) - 40),
    [count / width, width],
  );

const run = (setting: Setting, fn: (x: Tensor, c: Tensor) => Tensor): number[][] => {
  const { all, numRanks, numGathering, rows, adds } = setting;
  const numSources = adds ? numRanks : all;
  const ranks = Array.from({ length: all }, (_, rank): [NdArray, NdArray] => [
    numbersOf(rank, all * rows * width, 7),
    numbersOf(rank, numGathering * numSources * rows * width, 11),
  ]);
  return runRanks(fn, ranks, { expert: numRanks, tensor: numGathering }, whole).map((own) =>
    (own as unknown as NdArray).toNumbers(),
  );
};

/** Returns the sums of corresponding rows from adjacent ranks. */
const addedUp = (x_RD: Tensor, numSummands: number): Tensor =>
  reshape(sum(reshape(x_RD, [axisSize(whole) / numSummands, numSummands, -1, width]), { dims: 1 }), [-1, width]);

/** Adjoint of `addedUp`: returns, for each of the adjacent ranks, the cotangent of their sum. */
const toEach = (c_RD: Tensor, numSummands: number): Tensor => {
  const numSources = axisSize(whole) / numSummands;
  const each = reshape(c_RD, [numSources, 1, -1, width]);
  return reshape(broadcastTo(each, [numSources, numSummands, each.shape[2]!, width]), [-1, width]);
};

test("in pieces gives the result of one exchange and one all-gather", () => {
  fc.assert(
    fc.property(settings, (setting) => {
      const options = optionsOf(setting);
      expect(run(setting, (x) => exchangeAndGather(x, options))).toEqual(
        run(setting, (x) => allGather(addedUp(allToAll(x, whole), options.numSummands), "tensor")),
      );
    }),
    { numRuns: examples(40, 400) },
  );
});

test("its gradient is that of the all-gather, then of the exchange", () => {
  fc.assert(
    fc.property(settings, (setting) => {
      const options = optionsOf(setting);
      const gradient = (x: Tensor, c: Tensor): Tensor =>
        valueAndGrad((own: Tensor) => sum(multiply(exchangeAndGather(own, options), c)))(x)[1];
      expect(run(setting, gradient)).toEqual(
        run(setting, (_, c) => allToAll(toEach(reduceScatter(c, "tensor"), options.numSummands), whole)),
      );
    }),
    { numRuns: examples(20, 200) },
  );
});

test("all pieces except one are gathered while another is exchanged", () => {
  const options = { axis: whole, gatherAxis: "tensor", numSummands: 2, numPieces: 3 };
  const { graph } = trace((x: Tensor) => exchangeAndGather(x, options), [NdArray.zeros("f32", [24, width])], {
    mesh: { expert: 2, tensor: 2, [whole]: 4 },
  });
  const collectives = graph.nodes.filter(({ op }) => op === "all-to-all" || op === "all-gather");
  expect(collectives.map(({ op, params }) => `${op} ${String(params["priority"])}`).toSorted()).toEqual([
    ...Array.from({ length: 3 }, () => "all-gather 1"),
    ...Array.from({ length: 3 }, () => "all-to-all 2"),
  ]);
  // No exchange waits for an all-gather, because each exchange needs only data of its own rank.
  for (const { op, inputs } of collectives)
    for (const { node } of inputs) if (op === "all-to-all") expect(graph.nodes[node]?.op).not.toBe("all-gather");
});

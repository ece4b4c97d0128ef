import {
  absolute,
  add,
  allReduce,
  axisIndex,
  cast,
  clip,
  divide,
  greaterEqual,
  isFinite,
  maximum,
  multiply,
  pad,
  reduceMax,
  reduceMin,
  round,
  slice,
  subtract,
  type Tensor,
  where,
  zerosLike,
} from "@skein/tensor-core";
import { axisSize } from "@skein/tensor-core/backend";
import { describe, expect, it } from "vitest";
import {
  type Aggregator,
  type Compressor,
  identityCompressor,
  lengthOf,
  topKCompressor,
  withErrorFeedback,
} from "../src/index.ts";
import { gTopKAggregator } from "../src/g-top-k.ts";
import { msTopKCompressor } from "../src/ms-top-k.ts";
import { thresholdCompressor } from "../src/threshold.ts";
import { laws } from "./laws/table.ts";
import { basicRows } from "./rows/basics.ts";
import type { Row } from "./rows/row.ts";

const [identity] = basicRows as [Row];

const kept = (density: number, n: number): number => Math.min(n, Math.max(1, Math.floor(density * n)));
const topKOf = (density: number, name: string): Row => ({
  ...identity,
  name,
  aggregator: topKCompressor({ density }),
  bytes: (bucket, worldSize) => 8 * kept(density, lengthOf(bucket)) * (worldSize - 1),
  contraction: (bucket) => kept(density, lengthOf(bucket)) / Math.max(1, lengthOf(bucket)),
  dense: topKCompressor({ density: 1 }),
});
const topK = topKOf(0.1, "top-k");
const threshold: Row = {
  ...topK,
  aggregator: thresholdCompressor({ threshold: 0.5, capacity: 0.5 }),
  bytesAreMost: true,
};
const topKWithFeedback: Row = {
  ...topKOf(0.25, "top-k with error feedback"),
  aggregator: withErrorFeedback(topKCompressor({ density: 0.25 })),
};

/**
 * Returns an aggregator that averages `change(gradient)` by dense all-reduce, and returns `declared(gradient)` as
 * `sent`.
 */
const sending = (
  change: (gradient: Tensor) => Tensor,
  declared: (gradient: Tensor) => Tensor = change,
): Aggregator => ({
  ...identityCompressor(),
  aggregate: (gradient, state, _, { axis }) => ({
    mean: multiply(allReduce(change(gradient), axis), 1 / axisSize(axis)),
    sent: declared(gradient),
    state,
  }),
});

/** Returns a row with a faulty aggregator, which changes the gradient, the mean or the state. */
const wrong = (row: Row, aggregate: (aggregator: Aggregator) => Aggregator["aggregate"]): Row => ({
  ...row,
  aggregator: { ...row.aggregator, aggregate: aggregate(row.aggregator) },
});

const ofIdentity = (aggregator: Aggregator): Row => ({ ...identity, aggregator });

const signs = (gradient: Tensor): Tensor => where(greaterEqual(gradient, 0), zerosLike(gradient), -1);

/** For each law, a row with a faulty aggregator that violates the law. */
const breakers: readonly (readonly [law: string, what: string, row: Row])[] = [
  [
    "sends exactly the bytes that it declares",
    "declares 4 bytes less",
    { ...topK, aggregator: { ...topK.aggregator, bytesSent: (bucket, P) => topK.aggregator.bytesSent(bucket, P) - 4 } },
  ],
  [
    "sends exactly the bytes that it declares",
    "declares the bytes of another formula",
    { ...topK, bytes: (bucket, P) => 8 * lengthOf(bucket) * (P - 1) },
  ],
  [
    "sends exactly the bytes that it declares",
    "sends twice",
    wrong(identity, (own) => (gradient, state, bucket, context) => {
      const { mean, sent } = own.aggregate(gradient, state, bucket, context);
      return { mean: multiply(add(mean, allReduce(mean, "data", "max")), 0.5), sent, state };
    }),
  ],
  [
    "never sends more than the declared maximum",
    "declares half of the maximum",
    {
      ...threshold,
      aggregator: { ...threshold.aggregator, bytesSent: (bucket, P) => threshold.aggregator.bytesSent(bucket, P) / 2 },
    },
  ],
  [
    "never sends more than the declared maximum",
    "declares more than the capacity",
    {
      ...threshold,
      aggregator: { ...threshold.aggregator, bytesSent: (bucket, P) => threshold.aggregator.bytesSent(bucket, P) * 2 },
    },
  ],
  [
    "passes the bucket's priority",
    "passes no priority",
    wrong(
      identity,
      (own) =>
        (g, state, bucket, { axis }) =>
          own.aggregate(g, state, bucket, { axis }),
    ),
  ],
  [
    "a step leaves a state of the same structure",
    "adds a leaf",
    wrong(identity, (own) => (gradient, state, bucket, context) => ({
      ...own.aggregate(gradient, state, bucket, context),
      state: { last: gradient },
    })),
  ],
  [
    "begin and finish equal aggregate",
    "forgets 1/P",
    {
      ...identity,
      aggregator: {
        ...identity.aggregator,
        halves: {
          ...identity.aggregator.halves!,
          finish: (pending, bucket, context) =>
            multiply(identity.aggregator.halves!.finish(pending, bucket, context), axisSize("data")),
        },
      },
    },
  ],
  [
    "the sum of sent over all ranks",
    "declares everything as sent",
    wrong(topK, (own) => (g, ...rest) => ({ ...own.aggregate(g, ...rest), sent: g })),
  ],
  [
    "the sum of sent over all ranks",
    "sums without 1/P",
    ofIdentity(
      sending(
        (g) => multiply(g, axisSize("data")),
        (g) => g,
      ),
    ),
  ],
  [
    "all ranks have the same bits",
    "adds the rank to the mean",
    wrong(identity, (own) => (g, ...rest) => {
      const { mean, ...others } = own.aggregate(g, ...rest);
      return { ...others, mean: add(mean, multiply(cast(axisIndex("data"), "f32"), 2 ** -20)) };
    }),
  ],
  [
    "the residual plus sent",
    "halves the residual",
    wrong(topKWithFeedback, (own) => (g, ...rest) => {
      const { mean, sent, state } = own.aggregate(g, ...rest) as {
        mean: Tensor;
        sent: Tensor;
        state: { residual: Tensor; inner: unknown };
      };
      return { mean, sent, state: { ...state, residual: multiply(state.residual, 0.5) } };
    }),
  ],
  [
    "with error feedback, the means of all steps",
    "drops entries below 1",
    ofIdentity(
      sending(
        (g) => where(greaterEqual(absolute(g), 1), g, 0),
        (g) => g,
      ),
    ),
  ],
  ["satisfies the declared contraction on every rank", "keeps less than declared", { ...topK, contraction: () => 0.5 }],
  ["satisfies the declared contraction on every rank", "overshoots", ofIdentity(sending((g) => multiply(g, 1.001)))],
  [
    "satisfies the declared contraction on every rank",
    "drops entries of one rank for those of another",
    {
      ...topK,
      aggregator: { ...gTopKAggregator({ density: 0.1 }), contraction: (bucket) => topK.contraction!(bucket, 1) },
    },
  ],
  [
    "satisfies the declared contraction for lengths",
    "uses a sample",
    {
      ...topK,
      aggregator: {
        ...msTopKCompressor({ density: 0.1 }),
        contraction: (bucket) => topK.contraction!(bucket, 1),
      } as Aggregator,
    },
  ],
  ["permuted gradients", "sends the first half", ofIdentity(sending((g) => firstHalf(g)))],
  [
    "the sent part of a tensor",
    "selects within the whole bucket",
    { ...topK, aggregator: { ...topK.aggregator, scope: "tensor" } },
  ],
  [
    "gradients times a power of two",
    "sends entries above a threshold",
    ofIdentity(sending((g) => where(greaterEqual(absolute(g), 0.5), g, 0))),
  ],
  ["negated gradients", "sends positive entries", ofIdentity(sending((g) => maximum(g, 0)))],
  ["zeros stay zeros", "has no sign for zero", ofIdentity(sending((g) => add(signs(g), 1)))],
  [
    "gradients of equal elements",
    "divides by the range",
    ofIdentity(sending((g) => divide(g, subtract(reduceMax(g), reduceMin(g))))),
  ],
  [
    "a NaN or an infinity on one rank",
    "omits non-finite entries",
    ofIdentity(sending((g) => where(isFinite(g), g, 0))),
  ],
  ["a NaN or an infinity on one rank", "clips", ofIdentity(sending((g) => clip(g, -1e30, 1e30)))],
  [
    "huge and tiny gradients",
    "clips, and declares everything as sent",
    ofIdentity(
      sending(
        (g) => clip(g, -1e6, 1e6),
        (g) => g,
      ),
    ),
  ],
  ["set to send everything", "sends half", { ...topK, dense: topKCompressor({ density: 0.5 }) }],
  ["the same key gives the same bits", "draws during tracing", ofIdentity(sending((g) => multiply(g, Math.random())))],
  ["another key gives another draw", "ignores the key", { ...topK, randomised: true }],
  [
    "sends the gradient on average",
    "declares top-k unbiased",
    { ...topK, aggregator: { ...topK.aggregator, biased: false } },
  ],
  [
    "sends the gradient on average",
    "rounds to nearest",
    { ...ofIdentity(sending((g) => divide(round(multiply(g, 4)), 4))), randomised: true },
  ],
  [
    "payloads of several ranks decode",
    "adds one rank twice",
    {
      ...topK,
      aggregator: {
        ...topK.aggregator,
        decodeSum: (payloads, _, bucket) => multiply(compressorOf(topK).decodeSum!(payloads, 1, bucket), 2),
      } as Compressor,
    },
  ],
  [
    "a payload has the declared bytes",
    "declares 4 bytes more",
    {
      ...topK,
      aggregator: {
        ...topK.aggregator,
        payloadBytes: (bucket) => compressorOf(topK).payloadBytes(bucket) + 4,
      } as Compressor,
    },
  ],
  ["SGD reaches the optimum", "keeps no residual", { ...topK, descent: { errorFeedback: false } }],
  [
    "SGD reaches the optimum",
    "loses a tenth of the residual",
    wrong(topKWithFeedback, (own) => (g, ...rest) => {
      const { mean, sent, state } = own.aggregate(g, ...rest) as {
        mean: Tensor;
        sent: Tensor;
        state: { residual: Tensor; inner: unknown };
      };
      return { mean, sent, state: { ...state, residual: multiply(state.residual, 0.9) } };
    }),
  ],
];

const compressorOf = ({ aggregator }: Row): Compressor => aggregator as Compressor;

const firstHalf = (g: Tensor): Tensor => {
  const n = g.shape[0]!;
  const half = Math.ceil(n / 2);
  return pad(slice(g, [0], [half]), [[0, n - half]]);
};

describe.each(laws.map((law) => [law.name, law] as const))("the law that %s", (name, law) => {
  const own = breakers.filter(([begin]) => name.startsWith(begin));
  it("is broken by at least one aggregator", () => expect(own.length).toBeGreaterThan(0));
  it.each(own.map(([, what, row]) => [what, row] as const))("is broken by one that %s", (_, row) => {
    expect(law.appliesTo(row)).toBe(true);
    let failure: unknown;
    try {
      law.check(row);
    } catch (error) {
      failure = (error as Error).cause ?? error;
    }
    // The law itself must fail, not the tracing of the aggregator.
    expect((failure as Error | undefined)?.constructor).toBe(Error);
  });
});

it.each([identity, topK, topKWithFeedback])("the correct $name, on which they are based, breaks none", (row) => {
  for (const law of laws) if (law.appliesTo(row)) law.check(row);
});

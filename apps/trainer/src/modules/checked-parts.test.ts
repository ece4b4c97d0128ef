import { bucketOf, identityCompressor, topKCompressor } from "@skein/compressors";
import { mlp } from "@skein/models";
import {
  adam,
  cast,
  equal,
  evaluate,
  full,
  type GradientTransformation,
  multiply,
  NdArray,
  randomKey,
  referenceBackend,
  type Tensor,
  trace,
  zeros,
} from "@skein/tensor-core";
import { examples } from "@skein/testing";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { checkedCompression } from "./checked-compression.ts";
import { checkedOptimizer, checkedSchedule } from "./checked-optimizer.ts";
import type { OwnMetrics } from "./factories.ts";
import { withMetrics } from "./own-metrics.ts";

const origin = { what: "own.file mine.ts", folder: "/nowhere" };
const params = { layers: [{ weight: { dtype: "f32", shape: [2, 3] } }, { weight: { dtype: "f32", shape: [3] } }] };

/** Requires that `fn` throws a user error with a one-line message. */
const expectFault = (fn: () => unknown, line: RegExp): void => {
  expect(fn).toThrow(line);
  expect(fn).toThrow(expect.objectContaining({ kind: "user", code: "module" }));
};

describe("a user's optimizer", () => {
  const traced = (made: unknown): ReturnType<typeof trace> => {
    const optimizer = checkedOptimizer(made, origin);
    return trace((own: unknown, updates: unknown) => optimizer.update(updates, optimizer.init(own), { params: own }), [
      params,
      params,
    ] as never);
  };

  test("makes the same updates as without the check, and they are counted", async () => {
    const adamOf = (): GradientTransformation<unknown> =>
      adam({ learningRate: (step) => multiply(cast(step, "f32"), 0.1) }) as GradientTransformation<unknown>;
    const twice = (optimizer: GradientTransformation<unknown>) => (own: unknown, gradients: unknown) => {
      const [, once] = optimizer.update(gradients, optimizer.init(own), { params: own });
      return optimizer.update(gradients, once, { params: own });
    };
    const arrays = [{ a: NdArray.from([1, 2]) }, { a: NdArray.from([0.5, -3]) }];
    const run = (optimizer: GradientTransformation<unknown>): Promise<unknown> =>
      evaluate(twice(optimizer) as never, referenceBackend())(...(arrays as unknown as never[]));
    const [plain, checked] = [
      await run(adamOf()),
      await run(checkedOptimizer(adamOf(), origin)),
    ] as unknown as readonly (readonly [{ a: NdArray }, { state: unknown; step: NdArray }])[];
    expect(checked![0].a.toNumbers()).toEqual(plain![0].a.toNumbers());
    expect(checked![1].state).toEqual(plain![1]);
    expect(checked![1].step.item()).toBe(2);
  });

  const good = { init: () => ({}), update: (updates: unknown, state: unknown) => [updates, state] };
  const zerosLikeFirst = (updates: { layers: { weight: Tensor }[] }): unknown => ({
    layers: [updates.layers[0], { weight: zeros([2]) }],
  });
  test.each<[unknown, RegExp]>([
    [
      () => 0,
      /^own\.file mine\.ts returned .*, but must return an optimizer: an object with init\(params\) and update/,
    ],
    [{ init: () => ({}) }, /but must return an optimizer/],
    [{ ...good, observe: () => 0 }, /returned an optimizer with observe\(\), but statistics of layers/],
    [{ ...good, init: () => ({ count: 0 }) }, /: init returned as "count" 0, but must return a tree of tensors.*full/],
    [{ ...good, update: () => undefined }, /: update returned nothing, but must return \[updates, state\]/],
    [{ ...good, update: (updates: unknown) => [updates] }, /: update returned a list of 1, but must return \[updates/],
    [
      { ...good, update: (updates: never, state: unknown) => [zerosLikeFirst(updates), state] },
      /: update returned for layers\.1\.weight f32\[2\], but must return f32\[3\], as the parameters, to which/,
    ],
    [
      { ...good, update: ({ layers }: { layers: unknown[] }, state: unknown) => [{ layers: [layers[0]] }, state] },
      /: update returned for layers\.1\.weight nothing, but must return f32\[3\]/,
    ],
    [
      { ...good, update: (updates: object, state: unknown) => [{ ...updates, more: zeros([1]) }, state] },
      /: update returned "more", which is missing in the parameters/,
    ],
    [
      { init: () => ({ m: zeros([3]) }), update: (updates: unknown) => [updates, { m: zeros([3], "i32") }] },
      /: update returned for m i32\[3\], but must return f32\[3\], as the state that it was given/,
    ],
    [
      {
        ...good,
        update: () => {
          throw new RangeError("too far");
        },
      },
      /^own\.file mine\.ts: update: RangeError: too far; correct it there$/,
    ],
  ])("is refused: %#", (made, line) => expectFault(() => traced(made), line));
});

describe("a user's schedule", () => {
  const step = { dtype: "i32", shape: [] } as unknown as Tensor;
  test("is a number, or returns what its function returns", async () => {
    expect(checkedSchedule(0.5, origin)).toBe(0.5);
    const half = checkedSchedule((at: Tensor) => multiply(cast(at, "f32"), 0.5), origin) as (at: Tensor) => Tensor;
    const rate = await evaluate(half as never, referenceBackend())(NdArray.from([7], [], "i32") as never);
    expect((rate as NdArray).item()).toBe(3.5);
  });
  test.each<[unknown, RegExp]>([
    ["fast", /returned "fast", but must return a schedule: a number from 0, or a traced/],
    [-1, /returned -1, but must return a schedule/],
    [NaN, /returned NaN, but must return a schedule/],
    [() => 3, /: the schedule returned 3, but must return an f32 scalar/],
    [(at: Tensor) => at, /: the schedule returned i32\[\], but must return an f32 scalar/],
  ])("is refused: %#", (made, line) =>
    expectFault(() => {
      const schedule = checkedSchedule(made, origin);
      trace(schedule as (at: Tensor) => Tensor, [step]);
    }, line),
  );
});

describe("a user's exchange", () => {
  const bucket = bucketOf([{ path: "a", shape: [4] }]);
  const traced = (made: unknown): unknown => {
    const own = checkedCompression(made, origin);
    return trace(
      (gradient: Tensor) => own.aggregate(gradient, own.init(bucket), bucket, { axis: "data" }),
      [{ dtype: "f32", shape: [4] } as unknown as Tensor],
      { mesh: { data: 2 } },
    );
  };
  const good = identityCompressor();

  test("may be an aggregator, or a codec, and keeps its declarations", () => {
    for (const made of [good, topKCompressor({ density: 0.5 })]) {
      traced(made);
      const { biased, scope } = made;
      expect(checkedCompression(made, origin)).toMatchObject({ biased, scope });
      expect(checkedCompression(made, origin).bytesSent(bucket, 4)).toBe(made.bytesSent(bucket, 4));
    }
    const { aggregation, encode, decode, init, payloadBytes } = topKCompressor({ density: 0.5 });
    const codec = { aggregation, encode, decode, init, payloadBytes, biased: true, scope: "bucket" };
    expect(checkedCompression(codec, origin).bytesSent(bucket, 4)).toBe(
      topKCompressor({ density: 0.5 }).bytesSent(bucket, 4),
    );
    traced(codec);
  });

  test.each<[unknown, RegExp]>([
    [undefined, /returned nothing, but must return an Aggregator or a Codec/],
    [{ ...good, biased: "no" }, /: its biased is "no", but must be true or false/],
    [{ ...good, bytesSent: 3 }, /: its bytesSent is 3, but must be a function/],
    [
      { ...good, aggregate: (x: Tensor) => ({ mean: x, sent: zeros([3]), state: [] }) },
      /: aggregate returned as sent f32\[3\], but must return \{ mean, sent, state \}, the first two f32\[4\]/,
    ],
    [
      { ...good, init: () => [zeros([4])], aggregate: (x: Tensor) => ({ mean: x, sent: x, state: [zeros([5])] }) },
      /: aggregate returned for 0 f32\[5\], but must return f32\[4\], as the state that it was given/,
    ],
  ])("is refused: %#", (made, line) => expectFault(() => traced(made), line));
});

describe("a user's metrics", () => {
  const net = mlp({ sizes: [1, 2, 2] });
  const backend = referenceBackend();
  const own: OwnMetrics = {
    rows: ({ logits, batch }) => ({ zeros: equal(batch.labels, 0), wide: multiply(logits, 0) }),
    metrics: { share: { sum: "zeros", per: "count" } },
  };

  test("are sums over unmasked rows only, whatever the others contain", async () => {
    const model = withMetrics(net, own, "own", "/nowhere");
    expect(model.metrics).toEqual(own.metrics);
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 1 }), fc.boolean()), { minLength: 1, maxLength: 6 }),
        async (rows) => {
          const n = rows.length;
          const judged = (key: Tensor, batch: never): unknown => {
            const { params: made, state } = model.init(key);
            return model.evaluate(made, state, batch);
          };
          const sums = (await evaluate(judged as never, backend)(
            randomKey(1) as never,
            {
              inputs: NdArray.from(
                rows.map(([, counts]) => (counts ? 1 : NaN)), // masked rows have NaN logits, and NaN · 0 is NaN
                [n, 1],
              ),
              labels: NdArray.from(
                rows.map(([label]) => label),
                [n],
                "i32",
              ),
              mask: NdArray.from(
                rows.map(([, counts]) => Number(counts)),
                [n],
                "bool",
              ),
            } as never,
          )) as unknown as Readonly<Record<string, NdArray>>;
          const counted = rows.filter(([, counts]) => counts);
          expect(sums["count"]!.item()).toBe(counted.length);
          expect(sums["zeros"]!.item()).toBe(counted.filter(([label]) => label === 0).length);
          expect(sums["wide"]!.item()).toBe(0);
        },
      ),
      { numRuns: examples(8, 50) },
    );
  });

  const batch = { inputs: { dtype: "f32", shape: [4, 1] }, labels: { dtype: "i32", shape: [4] } };
  test.each<[unknown, RegExp]>([
    [[], /^own returned a list of 0, but must return metrics: an object with rows\(judged\)/],
    [{ ...own, rows: () => 3 }, /^own: rows returned 3, but must return tensors by name/],
    [
      { ...own, rows: () => ({ all: full([], 1) }) },
      /^own: rows returned as "all" f32\[\], but must .*, \[4\] or \[4, …\]/,
    ],
    [{ ...own, rows: () => ({ all: zeros([3]) }) }, /^own: rows returned as "all" f32\[3\], but must/],
    [
      { ...own, rows: () => ({ count: zeros([4]) }) },
      /^own: rows returned "count", but the model already has a sum of that name/,
    ],
    [{ ...own, metrics: { x: { sum: "zeros", per: "counts" } } }, /^own: its metrics: x uses "counts", but the/],
    [
      {
        ...own,
        rows: () => {
          throw new Error("no rows");
        },
      },
      /^own: rows: Error: no rows; correct it there/,
    ],
  ])("are refused: %#", (made, line) =>
    expectFault(
      () =>
        trace(
          (key: Tensor, samples: never) => {
            const model = withMetrics(net, made, "own", "/nowhere");
            const { params: first, state } = model.init(key);
            return model.evaluate(first, state, samples);
          },
          [{ dtype: "u32", shape: [2] }, batch] as never,
        ),
      line,
    ),
  );
});

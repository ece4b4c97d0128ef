import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ArgumentError, ShapeError } from "../errors.ts";
import {
  add,
  clip,
  exp,
  full,
  greater,
  log,
  multiply,
  round,
  sigmoid,
  square,
  stopGradient,
} from "../functions/elementwise.ts";
import { sum } from "../functions/reduce.ts";
import { scope } from "../graph/emit.ts";
import type { Graph } from "../graph/graph.ts";
import type { Tensor } from "../graph/tensor.ts";
import { trace } from "../tracing/trace.ts";
import { validateGraph } from "../inspection/validate.ts";
import { evaluate } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { optimize } from "../passes/optimize.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { customGradient } from "./custom-gradient.ts";
import { valueAndGrad, vjp } from "./vjp.ts";

const run = async (
  fn: (...args: Tensor[]) => readonly Tensor[],
  ...args: (number[] | NdArray)[]
): Promise<number[][]> =>
  (
    (await evaluate(
      fn,
      referenceBackend(),
    )(...args.map((arg) => (arg instanceof NdArray ? arg : NdArray.from(arg))))) as readonly NdArray[]
  ).map((array) => Array.from(array.toNumbers()));

const gradientOf =
  (fn: (x: Tensor) => Tensor) =>
  (x: Tensor): Tensor =>
    valueAndGrad((own: Tensor) => sum(fn(own)))(x)[1];

const roundStraightThrough = customGradient(
  (x: Tensor) => round(x),
  ({ cotangents }) => [cotangents],
);
const softplus = customGradient(
  (x: Tensor) => log(add(exp(x), 1)),
  ({ args: [x], cotangents }) => [multiply(cotangents, sigmoid(x))],
);

describe("customGradient", () => {
  it("returns the function's value and the rule's gradient", async () => {
    const [value, gradient] = await run(
      (x) => [roundStraightThrough(x!), gradientOf((y) => square(roundStraightThrough(y)))(x!)],
      [0.4, 1.6],
    );
    expect(value).toEqual([0, 2]);
    expect(gradient).toEqual([0, 4]); // Gradient 2·round(x), passed through the rounding.
  });

  it("clips a gradient in the middle of a chain, and keeps the value", async () => {
    const bounded = customGradient(
      (x: Tensor) => x,
      ({ cotangents }) => [clip(cotangents, -1, 1)],
    );
    const [gradient] = await run((x) => [gradientOf((y) => square(bounded(multiply(y, 10))))(x!)], [0.01, 1]);
    expect(gradient![0]).toBeCloseTo(2, 6); // Gradient 2·0.1, times 10.
    expect(gradient![1]).toBeCloseTo(10, 6); // Gradient 20, clipped to 1, times 10.
  });

  it("is differentiated again through what the rule computes", async () => {
    const [second] = await run((x) => [gradientOf(gradientOf(softplus))(x!)], [0.3, -2]);
    const s = (x: number): number => 1 / (1 + Math.exp(-x));
    second!.forEach((value, i) => expect(value).toBeCloseTo([0.3, -2].map((x) => s(x) * (1 - s(x)))[i]!, 6));
  });

  it("law: a rule with the true derivative changes no gradient, in trees and through shared arguments", async () => {
    const fn = (
      { a, b }: { readonly a: Tensor; readonly b: readonly [Tensor] },
      c: Tensor,
    ): { p: Tensor; q: readonly [Tensor] } => ({
      p: multiply(a, b[0]),
      q: [add(multiply(square(a), c), b[0])],
    });
    const own = customGradient(fn, ({ args: [{ a, b }, c], cotangents: { p, q } }) => [
      { a: add(multiply(p, b[0]), multiply(q[0], multiply(multiply(a, 2), c))), b: [add(multiply(p, a), q[0])] },
      multiply(q[0], square(a)),
    ]);
    const loss = (f: typeof fn) => (x: Tensor, y: Tensor) => {
      const { p, q } = f({ a: x, b: [multiply(x, y)] }, y);
      return sum(add(multiply(p, q[0]), x));
    };
    const gradients =
      (f: typeof fn) =>
      (x: Tensor, y: Tensor): readonly Tensor[] => {
        const { pullback } = vjp(([u, v]: readonly [Tensor, Tensor]) => loss(f)(u, v), [x, y] as const);
        return pullback(full([], 1));
      };
    const both = (x: Tensor, y: Tensor): readonly Tensor[] => [...gradients(fn)(x, y), ...gradients(own)(x, y)];
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.integer({ min: -8, max: 8 }), fc.integer({ min: -8, max: 8 })), { maxLength: 4 }),
        async (pairs) => {
          const [xs, ys] = [pairs.map(([x]) => x / 4), pairs.map(([, y]) => y / 4)];
          const [dx, dy, ownDx, ownDy] = await run(both as never, xs, ys);
          ownDx!.forEach((value, i) => expect(value).toBeCloseTo(dx![i]!, 4));
          ownDy!.forEach((value, i) => expect(value).toBeCloseTo(dy![i]!, 4));
        },
      ),
      { numRuns: 20 },
    );
  });

  it("adds no nodes to the graph, and computes once what the rule repeats", () => {
    const spec = { dtype: "f32", shape: [3] } as unknown as Tensor;
    const { graph } = trace((x: Tensor) => [softplus(x), gradientOf(softplus)(x)], [spec]);
    validateGraph(graph);
    expect(JSON.parse(JSON.stringify(graph))).toEqual(graph);
    const repeated = customGradient(
      (x: Tensor) => exp(x),
      ({ args: [x], cotangents }) => [multiply(cotangents, exp(x))],
    );
    const ops = (traced: Graph): string[] => optimize(traced, { fuse: false }).nodes.map(({ op }) => op);
    expect(
      ops(trace((x: Tensor) => valueAndGrad((y: Tensor) => sum(repeated(y)))(x), [spec]).graph).filter(
        (op) => op === "exp",
      ),
    ).toHaveLength(1);
  });

  it("names the scopes of a rule that differentiates once", () => {
    const spec = { dtype: "f32", shape: [3] } as unknown as Tensor;
    const square3 = (x: Tensor): Tensor => scope("square", () => multiply(square(x), 3));
    const own = customGradient(square3, ({ args: [x], cotangents }) => [vjp(square3, x).pullback(cotangents)]);
    const backwardScopes = (fn: (x: Tensor) => Tensor): string[] => {
      const { nodes } = trace(fn, [spec]).graph;
      return [...new Set(nodes.filter(({ phase }) => phase === "backward").map((node) => node.scope))].toSorted();
    };
    const inLayer = (x: Tensor): Tensor => scope("layer", () => own(x));
    expect(backwardScopes(gradientOf((x) => inLayer(exp(x))))).toEqual([
      "backward",
      "layer/backward",
      "layer/backward/square",
      "layer/backward/square/backward",
    ]);
    const within = backwardScopes((x) => scope("outer", () => gradientOf(square3)(x)));
    expect(within).toContain("outer/square/backward");
    expect(within.join()).not.toContain("outer/outer");
  });

  it("returns zeros if the rule returns undefined, and for integers", async () => {
    const scaled = customGradient(
      (x: Tensor, { factor, mask }: { factor: Tensor; mask: Tensor }, power: number) =>
        multiply(multiply(x, factor), mask.shape[0]! ** power),
      ({ args: [, { factor }], cotangents }) => [multiply(cotangents, factor), undefined, undefined],
    );
    const [dx, df] = await run(
      (x, f, m) => {
        const { pullback, value } = vjp(([a, b]: readonly [Tensor, Tensor]) => scaled(a, { factor: b, mask: m! }, 2), [
          x!,
          f!,
        ] as const);
        return pullback(value);
      },
      [1, 2],
      [3, 4],
      NdArray.from([1, 1], [2], "i32"),
    );
    expect(dx).toEqual([12 * 3, 32 * 4]);
    expect(df).toEqual([0, 0]);
  });

  const scalar = { dtype: "f32", shape: [2] } as unknown as Tensor;
  const gradientBy = (rule: unknown) => () =>
    trace((x: Tensor) => gradientOf(customGradient((y: Tensor) => square(y), rule as never))(x), [scalar]);
  it.each([
    [
      "a bare tensor",
      ({ cotangents }: { cotangents: Tensor }) => cotangents,
      ArgumentError,
      /returned a tensor for 1 arguments; return a list/,
    ],
    [
      "too many",
      ({ cotangents }: { cotangents: Tensor }) => [cotangents, cotangents],
      ArgumentError,
      /a list of 2 for 1 arguments/,
    ],
    [
      "another tree",
      ({ cotangents }: { cotangents: Tensor }) => [{ x: cotangents }],
      ArgumentError,
      /returned \[x\] for argument 0 of a tensor/,
    ],
    [
      "another shape",
      ({ cotangents }: { cotangents: Tensor }) => [sum(cotangents)],
      ShapeError,
      /returned f32\[\] for argument 0 of f32\[2\]/,
    ],
    [
      "another dtype",
      ({ cotangents }: { cotangents: Tensor }) => [greater(cotangents, 0)],
      ShapeError,
      /returned bool\[2\] for argument 0 of f32\[2\]/,
    ],
    ["a number", () => [1], ShapeError, /returned 1 instead of a tensor for argument 0/],
  ])("rejects a rule that gives %s", (_, rule, kind, message) => {
    expect(gradientBy(rule)).toThrow(kind);
    expect(gradientBy(rule)).toThrow(message);
  });

  it("rejects a differentiated tensor that is not an argument, and accepts a stopped one", () => {
    const close = (stop: (w: Tensor) => Tensor) => () =>
      trace(
        (w: Tensor) =>
          valueAndGrad((own: Tensor) => {
            const kept = stop(own);
            return sum(
              customGradient(
                (x: Tensor) => multiply(x, kept),
                ({ cotangents }) => [cotangents],
              )(own),
            );
          })(w),
        [scalar],
      );
    expect(close((w) => w)).toThrow(/reads a differentiated tensor that is not one of its arguments/);
    expect(close(stopGradient)).not.toThrow();
  });

  it("rejects a function that returns no tensors, and one called outside of a trace", () => {
    expect(() =>
      trace(
        () =>
          customGradient(
            () => 1,
            () => [],
          )(),
        [],
      ),
    ).toThrow(/must return a tree of tensors only/);
    expect(() => roundStraightThrough(scalar)).toThrow(ArgumentError);
  });
});

import { describe, expect, test } from "vitest";
import { valueAndGrad, vjp } from "./autodiff/vjp.ts";
import type { Communicator } from "./communicator.ts";
import { defineOperator, withOperators } from "./define-operator.ts";
import type { Backend } from "./execution/backend.ts";
import { add, cast, full, identity, multiply, stopGradient } from "./functions/elementwise.ts";
import { sum } from "./functions/reduce.ts";
import { meshCoordinate, scope } from "./graph/emit.ts";
import type { Graph } from "./graph/graph.ts";
import type { Tensor } from "./graph/tensor.ts";
import { trace } from "./tracing/trace.ts";
import { evaluate, jit, type JitOptions } from "./jit.ts";
import { NdArray } from "./nd-array.ts";
import { expandCompositions } from "./passes/expand-compositions.ts";
import { referenceBackend } from "./reference/reference-backend.ts";

const scalar = (value: number): NdArray => NdArray.scalar(value);

describe("trace", () => {
  test("records nodes with their scope", () => {
    const { graph } = trace((x: Tensor) => scope("outer", () => scope("inner", () => multiply(x, x))), [scalar(0)]);
    expect(graph.nodes.at(-1)).toMatchObject({ op: "multiply", scope: "outer/inner" });
  });

  test("a graph is plain data", () => {
    const { graph } = trace(
      (x: Tensor) => add(stopGradient(identity(x)), full([2], Number.NEGATIVE_INFINITY)),
      [NdArray.zeros("f32", [2])],
    );
    expect(JSON.parse(JSON.stringify(graph))).toEqual(graph);
  });

  test("rejects a tensor outside its trace", () => {
    let leaked: Tensor | undefined;
    trace((x: Tensor) => (leaked = x), [scalar(0)]);
    expect(() => trace((x: Tensor) => add(x, leaked!), [scalar(0)])).toThrow(/tensor of another trace/);
    expect(() => add(leaked!, 1)).toThrow(/outside of a traced function/);
  });

  test("a shape error names both shapes, the operator and the caller's line", () => {
    const wrong = (): unknown =>
      trace((a: Tensor, b: Tensor) => add(a, b), [NdArray.zeros("f32", [2, 3]), NdArray.zeros("f32", [4])]);
    expect(wrong).toThrow(/add: \[2, 3\] and \[4\] do not fit.*\n {4}at .*jit\.test\.ts:\d+/s);
  });

  test("rejects a leaf that is not a tensor", () => {
    expect(() => trace((x: Tensor) => [x, 3], [scalar(0)])).toThrow(/a part of its result is the number 3/);
  });
});

describe("meshCoordinate", () => {
  const double = (x: Tensor): Tensor => multiply(x, 2);
  const ofRank = (x: Tensor): Tensor => (meshCoordinate("data") === 1 ? double(x) : x);
  const mesh = { data: 4 };

  test("returns the rank's coordinate in the trace, and 0 along an axis of one rank", () => {
    const nodes = (place: number): number =>
      trace(ofRank, [scalar(0)], { mesh, place: { data: place } }).graph.nodes.length;
    expect([0, 1, 2].map(nodes)).toEqual([1, 3, 1]);
    expect(trace(ofRank, [scalar(0)]).graph.nodes).toHaveLength(1);
  });

  test("defaults to the coordinates of the communicators", async () => {
    const group = {
      rank: 1,
      worldSize: 4,
      members: [0, 1, 2, 3],
      exchangeTexts: (text: string) => [text, text, text, text],
    };
    const communicators = { data: group as unknown as Communicator };
    const run = async (options: JitOptions): Promise<number> =>
      (await evaluate(ofRank, referenceBackend(), options)(scalar(3))).item();
    expect(await run({ communicators })).toBe(6);
    expect(await run({ communicators, place: { data: 2 } })).toBe(3);
    expect(await run({ mesh, place: { data: 1 } })).toBe(6);
  });

  test("returns the trace's coordinate in compositions of users' operators, also when they are expanded", async () => {
    const placed = defineOperator({ name: "test/placed", composition: ([x]) => [add(x!, meshCoordinate("data"))] });
    const fn = (x: Tensor): Tensor => placed([x])[0]!;
    const { graph } = trace(fn, [scalar(0)], { mesh, place: { data: 3 } });
    const posted = withOperators(JSON.parse(JSON.stringify(graph)) as Graph, [placed], { mesh, place: { data: 3 } });
    for (const one of [graph, posted])
      expect(
        expandCompositions(one, () => false).nodes.find(({ op }) => op === "constant" || op === "full")?.params,
      ).toMatchObject({ value: 3 });
    expect((await evaluate(fn, referenceBackend(), { mesh, place: { data: 3 } })(scalar(1))).item()).toBe(4);
  });

  test("throws without coordinates, and for a rank that does not exist", () => {
    expect(() => trace(ofRank, [scalar(0)], { mesh })).toThrow(
      /the trace is for any of the 4 ranks along axis "data"; trace for one rank, .* or write axisIndex\("data"\)/,
    );
    expect(() => trace(ofRank, [scalar(0)], { mesh, place: { data: 4 } })).toThrow(
      /trace: place the number 4 along axis "data" is not one of its 4 ranks; use 0 to 3/,
    );
    expect(() => jit(ofRank, referenceBackend(), { place: { data: 1 } })).toThrow(
      /jit: place .* \{ mesh: \{ data: 2 \} \}/,
    );
    expect(() => meshCoordinate("data")).toThrow(/outside of a traced function/);
  });
});

describe("jit", () => {
  test("traces once per signature", async () => {
    let traced = 0;
    const square = jit((x: Tensor) => {
      traced++;
      return multiply(x, x);
    }, referenceBackend());
    await square(scalar(2));
    await square(scalar(3));
    expect(traced).toBe(1);
    await square(NdArray.from([1, 2]));
    expect(traced).toBe(2);
    expect(square.cacheSize).toBe(2);
  });

  test("keeps maxExecutables executables, and releases the least recently called one", async () => {
    const alive = new Set<number>();
    let [compiled, ran] = [0, -1];
    const backend: Backend = {
      ...referenceBackend(),
      compile: (graph) => {
        const [executable, own] = [referenceBackend().compile(graph), compiled++];
        alive.add(own);
        return {
          ...executable,
          run: (inputs) => {
            expect(alive).toContain(own);
            ran = own;
            return executable.run(inputs);
          },
          release: () => void alive.delete(own),
        };
      },
    };
    const square = jit((x: Tensor) => multiply(x, x), backend, { maxExecutables: 3 });
    const call = async (size: number): Promise<number> => {
      await square(NdArray.zeros("f32", [size]));
      return ran;
    };
    expect([await call(1), await call(2), await call(3), await call(1)]).toEqual([0, 1, 2, 0]);
    expect(await call(4)).toBe(3);
    expect([...alive], "of 1, 2 and 3, 2 was not called for longest").toEqual([0, 2, 3]);
    expect([await call(3), await call(1), await call(2), square.cacheSize]).toEqual([2, 0, 4, 3]);
    square.release();
    expect([alive.size, square.cacheSize]).toEqual([0, 0]);
  });

  test("rejects a limit that keeps no executable", () => {
    for (const maxExecutables of [0, -1, 1.5, NaN])
      expect(() => jit((x: Tensor) => x, referenceBackend(), { maxExecutables })).toThrow(
        /maxExecutables is .* 1 or more/,
      );
  });

  test("evaluate keeps the tree", async () => {
    const result = await evaluate(
      (x: { a: Tensor; b: Tensor }) => ({ sum: add(x.a, x.b), both: [x.a, x.b] }),
      referenceBackend(),
    )({ a: scalar(1), b: scalar(2) });
    expect(result.sum.item()).toBe(3);
    expect(result.both[1]!.item()).toBe(2);
  });
});

describe("valueAndGrad", () => {
  const backend = referenceBackend();

  test("sums gradients over all uses of a value", async () => {
    const f = valueAndGrad((x: Tensor) => add(multiply(x, multiply(x, x)), multiply(x, 2)));
    const [value, gradient] = await evaluate((x: Tensor) => f(x), backend)(scalar(3));
    expect([value.item(), gradient.item()]).toEqual([33, 29]);
  });

  test("treats captured values as constants", async () => {
    const [, gradient] = await evaluate((x: Tensor) => {
      const y = multiply(x, x);
      return valueAndGrad((z: Tensor) => multiply(z, y))(x);
    }, backend)(scalar(3));
    expect(gradient.item()).toBe(9);
  });

  test("an unused parameter has gradient zero", async () => {
    const result = await evaluate(
      (p: { used: Tensor; unused: Tensor }) => valueAndGrad((q: typeof p) => multiply(q.used, 2))(p),
      backend,
    )({ used: scalar(1), unused: scalar(1) });
    expect(result[1].unused.item()).toBe(0);
  });

  test("gradients can be differentiated again", async () => {
    const cube = (x: Tensor): Tensor => multiply(x, multiply(x, x));
    const second = await evaluate(
      (x: Tensor) => valueAndGrad((y: Tensor) => valueAndGrad(cube)(y)[1])(x)[1],
      backend,
    )(scalar(2));
    expect(second.item()).toBe(12);
  });

  test("rejects a loss that is not a scalar", () => {
    expect(() => trace((x: Tensor) => valueAndGrad((y: Tensor) => y)(x), [NdArray.zeros("f32", [2])])).toThrow(
      /needs a scalar loss, got shape \[2\]/,
    );
  });

  test("vjp pulls back any cotangent", async () => {
    const gradient = await evaluate(
      (x: Tensor) => vjp((y: Tensor) => multiply(y, y), x).pullback(full([2], 10)),
      backend,
    )(NdArray.from([1, 2]));
    expect(gradient.toNumbers()).toEqual([20, 40]);
  });

  test.each([
    [
      "another shape",
      (x: Tensor) => vjp((y: Tensor) => multiply(y, y), x).pullback(full([], 10)),
      /cotangent 0 is f32\[\], its result f32\[2\]/,
    ],
    [
      "more dimensions",
      (x: Tensor) => vjp((y: Tensor) => multiply(y, y), x).pullback(full([3, 2], 10)),
      /f32\[3, 2\], its result f32\[2\]/,
    ],
    [
      "another dtype",
      (x: Tensor) => vjp((y: Tensor) => multiply(y, y), x).pullback(full([2], 1, "i32")),
      /i32\[2\], its result f32\[2\]/,
    ],
    [
      "a number",
      (x: Tensor) => vjp((y: Tensor) => multiply(y, y), x).pullback(1 as never),
      /cotangent 0 is the number 1/,
    ],
    [
      "another tree",
      (x: Tensor) => vjp((y: Tensor) => ({ a: y, b: y }), x).pullback({ a: x } as never),
      /\[a\] for results \[a, b\]/,
    ],
    // Nodes on which the result does not depend are also checked.
    [
      "a constant's cotangent",
      (x: Tensor) => vjp(() => full([2], 1), x).pullback(full([1], 1)),
      /f32\[1\], its result f32\[2\]/,
    ],
  ])("vjp rejects a cotangent of %s", (_, fn, message) => {
    expect(() => trace(fn, [NdArray.zeros("f32", [2])] as never)).toThrow(message);
  });

  test("rejects a loss that is not floating-point", () => {
    const loss = (x: Tensor): unknown => valueAndGrad((y: Tensor) => sum(cast(y, "i32")))(x);
    expect(() => trace(loss, [NdArray.zeros("f32", [2])] as never)).toThrow(/loss of real numbers, got dtype i32/);
  });
});

import fc from "fast-check";
import { expect, test } from "vitest";
import { valueAndGrad } from "../autodiff/vjp.ts";
import { matmul } from "../functions/linear.ts";
import { sum } from "../functions/reduce.ts";
import { multiply, add } from "../functions/elementwise.ts";
import { sin, tanh } from "../functions/elementwise.ts";
import { evaluate } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { scope } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { replay } from "./replay.ts";
import { trace } from "./trace.ts";

/** Function with an input that is read twice, an unused input, a result that is also an input, and two scopes. */
const model = (x: Tensor, w: Tensor, unused: Tensor): Tensor[] => {
  const y = scope("a", () => tanh(matmul(x, w)));
  return [
    add(
      y,
      scope("b", () => multiply(sin(y), y)),
    ),
    x,
    unused,
  ];
};

const spec = (...shape: number[]): Tensor => ({ dtype: "f32", shape }) as unknown as Tensor;

test("a replayed graph has the bits and the gradients of its function, and keeps its scopes", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 0, max: 3 }),
      fc.integer({ min: 1, max: 4 }),
      fc.nat({ max: 99 }),
      async (rows, width, seed) => {
        const numbers = (count: number): number[] => Array.from({ length: count }, (_, i) => Math.sin(seed + 7.3 * i));
        const x = NdArray.from(numbers(rows * width), [rows, width]);
        const w = NdArray.from(numbers(width * 2), [width, 2]);
        const { graph } = trace(model, [spec(rows, width), spec(width, 2), spec(3)]);
        const plain = JSON.parse(JSON.stringify(graph)) as typeof graph;
        const again = (...inputs: Tensor[]): Tensor[] => replay(plain, inputs);
        const loss =
          (fn: (...inputs: Tensor[]) => Tensor[]) =>
          (a: Tensor, b: Tensor, c: Tensor): [Tensor, Tensor] =>
            valueAndGrad((own: Tensor, data: Tensor) => sum(fn(data, own, c)[0]!))(b, a);
        const run = async (fn: (...inputs: Tensor[]) => Tensor[]): Promise<number[][]> =>
          (await evaluate(loss(fn), referenceBackend())(x, w, NdArray.from([1, 2, 3]))).map((array) =>
            array.toNumbers(),
          );
        expect(await run(again)).toEqual(await run(model));
        const { graph: replayed } = trace(again, [spec(rows, width), spec(width, 2), spec(3)]);
        expect(replayed).toEqual(graph);
      },
    ),
    { numRuns: 30 },
  );
});

test("rejects other inputs than the graph was traced with", () => {
  const { graph } = trace(model, [spec(2, 3), spec(3, 2), spec(3)]);
  expect(() => trace((x: Tensor) => replay(graph, [x]), [spec(2, 3)])).toThrow("1 tensors were given for the 3 inputs");
  expect(() => trace((x: Tensor) => replay(graph, [x, x, x]), [spec(2, 3)])).toThrow(
    "input 1 is f32[2, 3], but the graph was traced with f32[3, 2]",
  );
});

import { describe, expect, test } from "vitest";
import { ShapeError } from "../errors.ts";
import type { Tensor } from "../graph/tensor.ts";
import { trace } from "../tracing/trace.ts";
import type { DType } from "../dtype.ts";
import { valueAndGrad } from "../autodiff/vjp.ts";
import type { Shape } from "../shape.ts";
import { matmul, type MatmulOptions } from "./linear.ts";
import { multiply } from "./elementwise.ts";
import { sum } from "./reduce.ts";

const product = (a: Shape, b: Shape, options: MatmulOptions = {}, dtype: DType = "f32") =>
  trace(
    (x: Tensor, y: Tensor) => matmul(x, y, options),
    [
      { dtype, shape: a },
      { dtype: "f32", shape: b },
    ],
  ).graph;

describe("matmul", () => {
  test("one matrix for a whole batch becomes a single tall product", () => {
    const { nodes, outputs } = product([4, 5, 3], [3, 7]);
    const products = nodes.filter((node) => node.op === "matmul");
    expect(products.map((node) => node.specs[0]!.shape)).toEqual([[20, 7]]);
    expect(nodes.some((node) => node.op === "broadcast-to")).toBe(false);
    expect(nodes[outputs[0]!.node]!.specs[0]!.shape).toEqual([4, 5, 7]);
  });

  test("its gradients never transpose an operand", () => {
    for (const transposeA of [false, true]) {
      for (const transposeB of [false, true]) {
        const loss = (operands: readonly Tensor[]): Tensor => {
          const y = matmul(operands[0]!, operands[1]!, { transposeA, transposeB });
          return sum(multiply(y, y));
        };
        const { graph } = trace(
          (a: Tensor, b: Tensor) => valueAndGrad(loss)([a, b]),
          [
            { dtype: "f32", shape: transposeA ? [3, 2] : [2, 3] },
            { dtype: "f32", shape: transposeB ? [5, 3] : [3, 5] },
          ],
        );
        expect(graph.nodes.filter((node) => node.op === "matmul")).toHaveLength(3);
        expect(graph.nodes.some((node) => node.op === "transpose")).toBe(false);
      }
    }
  });

  test.each([
    ["inner dimensions", [2, 3], [4, 5], {}, /\[2, 3\] and \[4, 5\] do not fit: .* here 3 and 4/],
    [
      "inner dimensions, transposed",
      [2, 3],
      [2, 3],
      { transposeA: true, transposeB: true },
      /\(the first and the second transposed\).*here 2 and 3/,
    ],
    ["leading dimensions", [2, 4, 3], [3, 3, 5], {}, /\[2\] and \[3\]/],
    ["a vector", [3], [3, 5], {}, /\[3\] and \[3, 5\] must both have at least 2 dimensions/],
  ] as const)("rejects %s that do not fit, naming both shapes and the caller", (_, a, b, options, message) => {
    expect(() => product(a, b, options)).toThrow(ShapeError);
    expect(() => product(a, b, options)).toThrow(message);
    expect(() => product(a, b, options)).toThrow(/linear\.test\.ts/);
  });

  test("rejects other dtypes", () => {
    expect(() => product([2, 3], [3, 4], {}, "bf16")).toThrow(
      /bf16\[2, 3\] and f32\[3, 4\] must be all f32, all f16 or all bf16/,
    );
  });
});

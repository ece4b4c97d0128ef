import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ArgumentError, ShapeError, SkeinError } from "../errors.ts";
import type { Tensor } from "../graph/tensor.ts";
import { trace } from "../tracing/trace.ts";
import { evaluate } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { optimize } from "../passes/optimize.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { elementCount, rowMajorStrides, type Shape } from "../shape.ts";
import { einsum } from "./einsum.ts";

const run = async (expression: string, ...operands: NdArray[]): Promise<NdArray> =>
  (await evaluate((...own: Tensor[]) => einsum(expression, ...own), referenceBackend())(...operands)) as NdArray;

const filled = (shape: Shape, seed: number): NdArray =>
  NdArray.from(
    Array.from({ length: elementCount(shape) }, (_, i) => Math.round(8 * Math.sin(3 * i + 5 * seed + 1))),
    shape,
  );

/** Evaluates an expression without "..." by definition: one nested loop per dimension name. */
const byLoops = (
  inputs: readonly string[],
  output: string,
  sizes: Readonly<Record<string, number>>,
  operands: readonly NdArray[],
): number[] => {
  const names = [...new Set([...output, ...inputs.join("")])];
  const result = new Array<number>(elementCount([...output].map((name) => sizes[name]!))).fill(0);
  const at = (labels: string, index: Readonly<Record<string, number>>): number => {
    const strides = rowMajorStrides([...labels].map((name) => sizes[name]!));
    return [...labels].reduce((sum, name, dim) => sum + index[name]! * strides[dim]!, 0);
  };
  const values = operands.map((operand) => operand.toNumbers());
  const loop = (depth: number, index: Record<string, number>): void => {
    if (depth === names.length) {
      result[at(output, index)]! += inputs.reduce((product, labels, i) => product * values[i]![at(labels, index)]!, 1);
      return;
    }
    for (let i = 0; i < sizes[names[depth]!]!; i++) loop(depth + 1, { ...index, [names[depth]!]: i });
  };
  loop(0, {});
  return result;
};

const expressions = fc
  .record({
    inputs: fc.array(fc.string({ unit: fc.constantFrom("a", "b", "c", "d", "E"), maxLength: 4 }), {
      minLength: 1,
      maxLength: 4,
    }),
    sizes: fc.record({
      a: fc.nat(3),
      b: fc.nat(3),
      c: fc.integer({ min: 1, max: 4 }),
      d: fc.constant(2),
      E: fc.integer({ min: 1, max: 3 }),
    }),
    order: fc.shuffledSubarray(["a", "b", "c", "d", "E"]),
  })
  .map(({ inputs, sizes, order }) => ({
    inputs,
    sizes,
    output: order.filter((name) => inputs.join("").includes(name)).join(""),
  }));

describe("einsum", () => {
  test("equals nested loops, for any expression", async () => {
    await fc.assert(
      fc.asyncProperty(expressions, async ({ inputs, output, sizes }) => {
        const operands = inputs.map((labels, i) =>
          filled(
            [...labels].map((name) => sizes[name as "a"]),
            i,
          ),
        );
        const y = await run(`${inputs.join(",")}->${output}`, ...operands);
        expect(y.shape).toEqual([...output].map((name) => sizes[name as "a"]));
        // Convert −0 to 0, so that −0 and 0 are equal.
        expect(y.toNumbers().map((value) => value + 0)).toEqual(
          byLoops(inputs, output, sizes, operands).map((value) => value + 0),
        );
      }),
      { numRuns: 300 },
    );
  });

  test.each([
    [
      "without a right side: letters that stand once, in alphabetical order",
      "ba,ca",
      "bc",
      [
        [2, 3],
        [4, 3],
      ],
    ],
    [
      "spaces do not count",
      " b a , c a -> c b ",
      "cb",
      [
        [2, 3],
        [4, 3],
      ],
    ],
  ] as const)("%s", async (_, expression, output, shapes) => {
    const operands = shapes.map((shape, i) => filled(shape, i));
    const y = await run(expression, ...operands);
    expect(y.toNumbers()).toEqual(byLoops(["ba", "ca"], output, { a: 3, b: 2, c: 4 }, operands));
  });

  test("... represents the other dimensions, aligned at the end and broadcast", async () => {
    const [a, b] = [filled([2, 1, 3], 1), filled([4, 3], 2)];
    const wanted = byLoops(["xyi", "zi"], "xz", { x: 2, y: 1, z: 4, i: 3 }, [a, b]);
    const y = await run("...i,...i->...", a, b);
    expect(y.shape).toEqual([2, 4]);
    expect(y.toNumbers()).toEqual(wanted);
    expect((await run("...i,...i", a, b)).toNumbers()).toEqual(wanted);
    expect((await run("i...->...", a)).toNumbers()).toEqual(byLoops(["xyi"], "yi", { x: 2, y: 1, i: 3 }, [a]));
  });

  const nodes = (expression: string, ...shapes: Shape[]): string[] => {
    const specs = shapes.map((shape) => ({ dtype: "f32" as const, shape }));
    const { graph } = trace((...own: Tensor[]) => einsum(expression, ...own), specs as never);
    return optimize(graph).nodes.map(({ op }) => op);
  };

  test.each([
    ["ij,jk->ik"],
    ["ij,kj->ik"],
    ["ji,jk->ik"],
    ["ji,kj->ik"],
    ["jk,ij->ik"],
    ["bij,bkj->bik"],
    ["bji,bjk->bik"],
  ])("%s is one product, without data movement", (expression) => {
    const dims = { i: 3, j: 4, k: 5, b: 2 };
    const shapes = expression
      .split("->")[0]!
      .split(",")
      .map((labels) => [...labels].map((name) => dims[name as "i"]));
    expect(nodes(expression, ...shapes).filter((op) => op !== "input" && op !== "reshape")).toEqual(["matmul"]);
  });

  test("three operands are multiplied in the cheapest order", () => {
    const products = (...shapes: [Shape, Shape, Shape]): Shape[] => {
      const specs = shapes.map((shape) => ({ dtype: "f32" as const, shape }));
      const { graph } = trace((...own: Tensor[]) => einsum("ab,bc,cd->ad", ...own), specs as never);
      return graph.nodes
        .filter(({ op }) => op === "matmul")
        .map(({ specs: [y] }) => y!.shape.toSorted((a, b) => a - b));
    };
    // If b × c and c × d are multiplied first, the cost is 300 + 300 multiplications. If a × b and b × c are multiplied
    // first, the cost is 5000 + 7500.
    expect(products([50, 2], [2, 50], [50, 3])).toEqual([
      [2, 3],
      [3, 50],
    ]);
    expect(products([3, 50], [50, 2], [2, 50])).toEqual([
      [2, 3],
      [3, 50],
    ]);
  });

  test.each([
    ["i$,j->i", [[2, 3], [3]], ArgumentError, /"\$" in "i\$,j->i" is not a dimension name/],
    ["i..j->ij", [[2, 3]], ArgumentError, /"\." in/],
    ["...i...->i", [[2, 3]], ArgumentError, /has "\.\.\." twice/],
    ["ij->i->j", [[2, 3]], ArgumentError, /"->" more than once/],
    ["ij,jk->ik", [[2, 3]], ArgumentError, /names 2 operands, but 1 were given/],
    ["", [], ArgumentError, /names 1 operand, but 0 were given/],
    ["ijk->i", [[2, 3]], ShapeError, /"ijk" names 3 dimensions, but operand 0 is f32\[2, 3\] with 2/],
    ["ij...->i", [[2]], ShapeError, /"ij\.\.\." names 2 dimensions, but operand 0 is f32\[2\] with 1/],
    [
      "ij,jk->ik",
      [
        [2, 3],
        [4, 5],
      ],
      ShapeError,
      /"j" in "ij,jk->ik" is 3 in f32\[2, 3\] and 4 in f32\[4, 5\]/,
    ],
    ["ii->i", [[2, 3]], ShapeError, /"i" in "ii->i" is 2 in f32\[2, 3\] and 3 in/],
    ["i,i->i", [[1], [3]], ShapeError, /"i" in "i,i->i" is 1 in f32\[1\] and 3 in f32\[3\]/],
    ["...,...->...", [[2], [3]], ShapeError, /a dimension of "\.\.\." in .* is 2 in f32\[2\] and 3/],
    ["ij->ijk", [[2, 3]], ArgumentError, /"k" on the right of "ij->ijk" is missing on the left/],
    ["ij->ii", [[2, 3]], ArgumentError, /"i" occurs twice on the right/],
    ["...j->j", [[2, 3]], ArgumentError, /has "\.\.\." on the left only/],
  ] as const)("%s of %j is rejected in one line", async (expression, shapes, kind, message) => {
    const refused = run(expression, ...shapes.map((shape) => NdArray.zeros("f32", shape)));
    await expect(refused).rejects.toThrow(kind);
    await expect(refused).rejects.toThrow(message);
  });

  test("accepts only f32, and an expression as the first argument", async () => {
    await expect(run("i,i->", NdArray.zeros("i32", [3]), NdArray.zeros("i32", [3]))).rejects.toThrow(
      /operand i32\[3\].*cast it first/,
    );
    await expect(evaluate((x: Tensor) => einsum(x as never, x), referenceBackend())(filled([2], 1))).rejects.toThrow(
      SkeinError,
    );
  });
});

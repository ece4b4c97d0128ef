import { describe, expect, test } from "vitest";
import { valueAndGrad } from "../autodiff/vjp.ts";
import type { Graph } from "../graph/graph.ts";
import type { Tensor } from "../graph/tensor.ts";
import { trace } from "../tracing/trace.ts";
import { evaluate } from "../jit.ts";
import { NdArray } from "../nd-array.ts";
import { referenceBackend } from "../reference/reference-backend.ts";
import { relu } from "./activation.ts";
import { add, clip, constant, full, maximum, multiply, power, stopGradient, where } from "./elementwise.ts";
import { pad } from "./movement.ts";
import { reduceMax, sum, topK } from "./reduce.ts";

const backend = referenceBackend();
const gradientOf = async (fn: (x: Tensor) => Tensor, values: readonly number[]): Promise<number[]> => {
  const [, gradient] = await evaluate(
    (x: Tensor) => valueAndGrad((own: Tensor) => sum(fn(own)))(x),
    backend,
  )(NdArray.from(values));
  return gradient.toNumbers();
};
const opsOf = (graph: Graph): string[] => graph.nodes.map((node) => node.op);

describe("gradients where a function has a kink", () => {
  test("relu gives 0 at 0", async () => expect(await gradientOf(relu, [-1, 0, 2])).toEqual([0, 0, 1]));
  test("clip gives 1 at its ends", async () =>
    expect(await gradientOf((x) => clip(x, -1, 1), [-2, -1, 0, 1, 2])).toEqual([0, 1, 1, 1, 0]));
  test("maximum shares a tie", async () =>
    expect(await gradientOf((x) => maximum(x, 3), [2, 3, 4])).toEqual([0, 0.5, 1]));
  test("reduceMax shares a tie of three", async () => {
    const gradient = await gradientOf((x) => reduceMax(x), [5, 1, 5, 5]);
    gradient.forEach((value, i) => expect(value).toBeCloseTo(i === 1 ? 0 : 1 / 3, 7));
  });
  test("a power of 0 has no gradient for its exponent", async () =>
    expect(await gradientOf((x) => power(0, x), [1, 2])).toEqual([0, 0]));
});

test("stopGradient passes the value but not the gradient", async () => {
  expect(await gradientOf((x) => multiply(x, stopGradient(x)), [3, -2])).toEqual([3, -2]);
});

test("topK returns each gradient to its entry", async () => {
  expect(await gradientOf((x) => multiply(topK(x, 2)[0], constant([10, 20])), [1, 7, 3, 9])).toEqual([0, 20, 0, 10]);
});

describe("numbers as operands", () => {
  test.each([
    [
      "multiply",
      (x: Tensor) => multiply(x, 0.5),
      /multiply: 0\.5 cannot be represented as i32, which holds the whole numbers from -2147483648 to 2147483647; cast/,
    ],
    ["maximum", (x: Tensor) => maximum(-Infinity, x), /maximum: -Infinity cannot be represented as i32/],
    ["where", (x: Tensor) => where(full([2], 1, "bool"), x, NaN), /where: NaN cannot be represented as i32/],
    ["add", (x: Tensor) => add(x, 2 ** 31), /add: 2147483648 cannot be represented as i32/],
    ["full", () => full([2], -1, "u32"), /constant: -1 cannot be represented as u32/],
    ["constant", () => constant([1, 1.5], "i32"), /constant: 1\.5 cannot be represented as i32/],
    ["pad", (x: Tensor) => pad(x, [[1, 0]], 0.25), /pad: 0\.25 cannot be represented as i32/],
  ])("%s rejects a number that an integer dtype cannot represent", (_, fn, message) => {
    expect(() => trace(fn, [NdArray.zeros("i32", [2])] as never)).toThrow(message);
  });

  test("take the dtype of the other operand", () => {
    const { graph } = trace((x: Tensor) => [add(x, 1), where(full([], 1, "bool"), x, 0)], [
      { dtype: "u32", shape: [3] },
    ] as never);
    expect(graph.outputs.map((ref) => graph.nodes[ref.node]!.specs[0]!.dtype)).toEqual(["u32", "u32"]);
  });

  test("as exponents become cheaper operators", () => {
    const op = (exponent: number): string | undefined =>
      opsOf(trace((x: Tensor) => power(x, exponent), [{ dtype: "f32", shape: [3] }] as never).graph).at(-1);
    expect([2, 0.5, -1, 1, 3].map(op)).toEqual(["multiply", "sqrt", "divide", "input", "power"]);
  });
});

describe("constant", () => {
  const specOf = (values: Parameters<typeof constant>[0]): unknown => trace(() => constant(values), []).graph.nodes[0];

  test("is a fill if all values are equal, a literal otherwise", () => {
    expect(
      specOf([
        [2, 2],
        [2, 2],
      ]),
    ).toMatchObject({ op: "constant", params: { value: 2, shape: [2, 2] } });
    expect(
      specOf([
        [1, 2],
        [3, 4],
      ]),
    ).toMatchObject({ op: "literal", params: { values: [1, 2, 3, 4], shape: [2, 2] } });
  });

  test("survives JSON with -0, NaN and infinities", async () => {
    const values = [-0, NaN, Infinity, -Infinity, 1];
    const { graph } = trace(() => constant(values), []);
    expect((JSON.parse(JSON.stringify(graph)) as Graph).nodes[0]!.params["values"]).toEqual([
      "-0",
      "NaN",
      "Infinity",
      "-Infinity",
      1,
    ]);
    expect((await evaluate(() => constant(values), backend)()).toNumbers()).toEqual(values);
  });

  test("rejects ragged lists", () =>
    expect(() => specOf([[1, 2], [3]])).toThrow(/the list at \[1\] has 1 entries, the first of its depth has 2/));
  test("rejects values that belong into an argument", () =>
    expect(() => specOf(Array.from({ length: 4097 }, (_, i) => i))).toThrow(
      /4097 numbers are too many.*limit is 4096/,
    ));
});

describe("errors name the operator, the operands and the cure", () => {
  const f32 = { dtype: "f32", shape: [2, 3] };
  test("shapes", () =>
    expect(() => trace((a: Tensor, b: Tensor) => add(a, b), [f32, { dtype: "f32", shape: [4] }] as never)).toThrow(
      /add: \[2, 3\] and \[4\] do not fit.*3 meets 4/,
    ));
  test("dtypes", () =>
    expect(() => trace((a: Tensor, b: Tensor) => add(a, b), [f32, { dtype: "i32", shape: [2, 3] }] as never)).toThrow(
      /add: operands f32\[2, 3\] and i32\[2, 3\] differ; cast/,
    ));
  test("storage dtypes", () =>
    expect(() => trace((a: Tensor) => multiply(a, a), [{ dtype: "bf16", shape: [3] }] as never)).toThrow(
      /multiply: dtype bf16 is not supported.*cast/,
    ));
  test("conditions", () =>
    expect(() => trace((a: Tensor) => where(a, a, a), [f32] as never)).toThrow(
      /where: the condition must be bool, got f32\[2, 3\]/,
    ));
  test("more entries than there are", () =>
    expect(() => trace((a: Tensor) => topK(a, 4), [f32] as never)).toThrow(
      /topK: k = 4 entries cannot be taken along the last dimension of \[2, 3\]; use 0 ≤ k ≤ 3/,
    ));
});

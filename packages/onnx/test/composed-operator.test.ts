import {
  defineOperator,
  evaluate,
  multiply,
  NdArray,
  referenceBackend,
  softplus,
  tanh,
  type Tensor,
} from "@skein/tensor-core";
import { composedOperatorCases, firstDifference, sinh } from "@skein/testing";
import { describe, expect, test } from "vitest";
import { exportOnnx } from "../src/index.ts";
import { runOnnx } from "./run-onnx.ts";

const mish = defineOperator({ name: "acme/mish", composition: ([x]) => [multiply(x!, tanh(softplus(x!)))] });

const exported = (fn: (x: Tensor) => Tensor, shape: readonly number[], batch?: "dynamic"): Uint8Array =>
  exportOnnx({
    fn: (_: object, { x }) => ({ y: fn(x!) }),
    weights: {},
    inputs: { x: { dtype: "f32", shape } },
    ...(batch && { batch }),
  });

const check = async (model: Uint8Array, fn: (x: Tensor) => Tensor, x: NdArray): Promise<void> => {
  const { y } = await runOnnx(model, { x });
  const expected = await evaluate(fn, referenceBackend())(x);
  expect(y!.shape).toEqual(expected.shape);
  const difference = firstDifference(y!.toNumbers(), expected.toNumbers(), { absolute: 1e-6, relative: 1e-5 });
  expect(difference).toBeUndefined();
};

describe("operators with a composition, exported to ONNX", () => {
  test.each(composedOperatorCases.map((row) => [row.name, row] as const))(
    "sinh: %s",
    async (_, { fn, inputs: [x] }) => {
      const own = (each: Tensor): Tensor => fn(each) as Tensor;
      await check(exported(own, x!.shape), own, x!);
    },
  );

  test("for any batch size", async () => {
    const model = exported(sinh, [3], "dynamic");
    for (const batch of [1, 4]) await check(model, sinh, NdArray.from(new Array(3 * batch).fill(0.7), [batch, 3]));
  });

  test("a user's operator", async () => {
    const fn = (x: Tensor): Tensor => mish([x])[0];
    await check(exported(fn, [4]), fn, NdArray.from([-3, -0.1, 0, 2]));
  });
});

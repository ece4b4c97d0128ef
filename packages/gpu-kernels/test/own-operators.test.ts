import {
  add,
  defineOperator,
  elementCount,
  evaluate,
  jit,
  multiply,
  NdArray,
  OperatorError,
  referenceBackend,
  softplus,
  sum,
  tanh,
  type Tensor,
  UnsupportedError,
  valueAndGrad,
} from "@skein/tensor-core";
import { describe, expect, test } from "vitest";
import type { WebGpuKernel, WebGpuBackend } from "../src/index.ts";
import { hasAdapter, openBackend } from "./gpu.ts";

const workgroupSize = 64;

const mish = defineOperator({ name: "acme/mish", composition: ([x]) => [multiply(x!, tanh(softplus(x!)))] });
const mishKernel: WebGpuKernel = {
  op: mish.operator.name,
  plan: ({ outputs: [y] }) => {
    const count = elementCount(y!.shape);
    return {
      passes: [
        {
          label: "mish",
          bindings: [
            { name: "x", type: "array<f32>", source: { input: 0 }, access: "read" },
            { name: "y", type: "array<f32>", source: { output: 0 }, access: "write" },
          ],
          workgroupSize,
          groups: Math.ceil(count / workgroupSize),
          code: `fn main(group: u32, lane: u32) {
  let i = group * ${workgroupSize}u + lane;
  if (i < sizes.count) { y[i] = x[i] * tanh(log(1.0 + exp(x[i]))); }
}`,
          sizes: { count },
        },
      ],
    };
  },
};

/** Operator that computes sum and difference, in one pass with two results. */
const butterfly = defineOperator({
  name: "acme/butterfly",
  infer: ([a]) => [a!, a!],
  reference: ([a, b]) => [a!.data.map((x, i) => x + b!.data[i]!), a!.data.map((x, i) => x - b!.data[i]!)],
});
const butterflyKernel: WebGpuKernel = {
  op: butterfly.operator.name,
  plan: ({ outputs: [y] }) => ({
    passes: [
      {
        label: "butterfly",
        bindings: [
          { name: "a", type: "array<f32>", source: { input: 0 }, access: "read" },
          { name: "b", type: "array<f32>", source: { input: 1 }, access: "read" },
          { name: "p", type: "array<f32>", source: { output: 0 }, access: "write" },
          { name: "q", type: "array<f32>", source: { output: 1 }, access: "write" },
        ],
        workgroupSize: 1,
        groups: elementCount(y!.shape),
        code: "fn main(i: u32, lane: u32) { p[i] = a[i] + b[i]; q[i] = a[i] - b[i]; }",
      },
    ],
  }),
};

const withBackend = async <T>(
  kernels: readonly WebGpuKernel[],
  use: (backend: WebGpuBackend) => Promise<T>,
): Promise<T> => {
  const backend = await openBackend({ kernels });
  try {
    return await use(backend);
  } finally {
    backend.close();
  }
};

const input = NdArray.from(
  Array.from({ length: 70 }, (_, i) => Math.sin(i) * 3),
  [70],
);

describe.skipIf(!hasAdapter)("user-defined operators on WebGPU", () => {
  test("kernel and composition agree with the reference: gradients, a repeated operand, a donated argument", async () => {
    const step = (x: Tensor): readonly Tensor[] => {
      const [value, gradient] = valueAndGrad((own: Tensor) => sum(mish([multiply(own, 0.5)])[0]))(x);
      const [p, q] = butterfly([add(x, 1), x]);
      const [twice, nothing] = butterfly([x, x]);
      return [value, gradient, multiply(p, q), twice, nothing, mish([x])[0]];
    };
    const numbers = async (results: unknown): Promise<number[][]> =>
      ((await results) as NdArray[]).map((each) => Array.from(each.toNumbers()));
    const expected = await numbers(evaluate(step, referenceBackend())(input));
    for (const kernels of [[mishKernel, butterflyKernel], [butterflyKernel]])
      await withBackend(kernels, async (backend) => {
        const results = await numbers(evaluate(step, backend, { donate: [0] })(input));
        results.forEach((result, i) => {
          expect(result).toHaveLength(expected[i]!.length);
          result.forEach((value, j) =>
            expect(Math.abs(value - expected[i]![j]!)).toBeLessThan(1e-4 * (1 + Math.abs(expected[i]![j]!))),
          );
        });
      });
  });

  test("reports errors of a kernel with the operator's name, before anything runs", async () => {
    const pass = butterflyKernel.plan(
      { op: "", inputs: [], outputs: [{ dtype: "f32", shape: [1] }], params: {} },
      undefined as never,
      {},
      [],
    ).passes[0]!;
    const wrong = (change: object): WebGpuKernel => ({
      ...butterflyKernel,
      plan: () => ({ passes: [{ ...pass, ...change }] }),
    });
    const attempts: readonly [readonly WebGpuKernel[], new (...args: never[]) => Error, RegExp][] = [
      [
        [],
        UnsupportedError,
        /webgpu backend cannot run this graph.*\n {2}acme\/butterfly: has no kernel on this backend and no composition/,
      ],
      [[wrong({ groups: 0.5 })], OperatorError, /acme\/butterfly: pass "butterfly" of its kernel has 0.5 workgroups/],
      [[wrong({ workgroupSize: 100_000 })], OperatorError, /has workgroups of 100000 invocations; .* supports 1 to/],
      [
        [wrong({ bindings: pass.bindings.slice(0, 3) })],
        OperatorError,
        /no pass of its kernel writes result 1; bind \{ output: 1 \}/,
      ],
      [
        [wrong({ bindings: [...pass.bindings, { ...pass.bindings[0], name: "c", source: { input: 2 } }] })],
        OperatorError,
        /binds c to \{"input":2\}, which the node does not have/,
      ],
      [[wrong({ bindings: [...pass.bindings, pass.bindings[0]] })], OperatorError, /two bindings with the name a/],
      [
        [wrong({ bindings: [{ ...pass.bindings[0], access: "write" }, ...pass.bindings.slice(1)] })],
        OperatorError,
        /writes a, an input that other kernels may read/,
      ],
      [
        [wrong({ code: "fn main(i: u32, lane: u32) { p[i] = a[i] +; }" })],
        OperatorError,
        /acme\/butterfly: the shader "butterfly" does not compile/,
      ],
    ];
    for (const [kernels, kind, message] of attempts)
      await withBackend(kernels, async (backend) => {
        const f = jit((x: Tensor) => butterfly([x, x]), backend);
        const attempt = f(input);
        await expect(attempt).rejects.toThrow(kind);
        await expect(attempt).rejects.toThrow(message);
        f.release();
        expect(backend.bytesInUse()).toBe(0);
      });
  });
});

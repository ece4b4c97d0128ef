import {
  adam,
  adamw,
  applyUpdates,
  chain,
  clipByGlobalNorm,
  elementCount,
  type Tensor,
  trace,
} from "@skein/tensor-core";
import { kernelNodeOf } from "@skein/tensor-core/backend";
import { expect, test } from "vitest";
import { prepareForCpu } from "../src/cpu-backend.ts";

const size = 1000;
const vector = { dtype: "f32", shape: [size] } as const;

/**
 * Returns the number of elements per parameter that the kernels of an update read and write, counting each operand of
 * each kernel once.
 */
const streamed = (optimizer: ReturnType<typeof adam>): number => {
  let init: unknown;
  trace(
    (params: Tensor) => {
      init = optimizer.init(params);
      return params;
    },
    [vector],
  );
  const { graph } = trace(
    (params: Tensor, state: never, gradient: Tensor) => {
      const [updates, next] = optimizer.update(gradient, state, { params });
      return [applyUpdates(params, updates), next] as const;
    },
    [vector, init as never, vector],
  );
  const prepared = prepareForCpu(graph);
  const operands = prepared.nodes
    .filter(({ op }) => op !== "input")
    .flatMap((node) => {
      const { inputs, outputs } = kernelNodeOf(prepared, node);
      return [...inputs, ...outputs];
    });
  const counts = operands.map(({ shape }) => elementCount(shape)).filter((count) => count >= size);
  return counts.reduce((sum, count) => sum + count, 0) / size;
};

/**
 * Number of elements per parameter if each tensor is accessed once: weights, gradients and two means are read; weights
 * and means are written.
 */
const once = 7;

test.each([
  ["adam", adam({ learningRate: 0.01 }), once],
  ["adamw with decay", adamw({ learningRate: 0.01, weightDecay: 0.1 }), once],
  [
    "adam behind a bound on the norm, which reads the gradient first",
    chain(clipByGlobalNorm(1), adam({ learningRate: 0.01 })) as never,
    once + 1,
  ],
])("%s streams every array once", (_, optimizer, expected) => {
  expect(streamed(optimizer as ReturnType<typeof adam>)).toBe(expected);
});

import { setImmediate } from "node:timers/promises";
import * as jax from "@jax-js/jax";
import { beforeAll, expect, test } from "vitest";
import type { Problem } from "../problems/problem.ts";
import { withValues } from "../problems/values.ts";
import { jaxContestant } from "./jax-js-contestant.ts";

const product: Problem = {
  name: "tiny",
  kind: "matmul",
  learningRate: 0,
  tensors: ["a", "b"].map((name) => ({ name, dtype: "f32", shape: [4, 4] })),
};

beforeAll(async () => {
  await jax.init("wasm");
  jax.defaultDevice("wasm");
});

test("a product of jax-js ends when its device has nothing left to do, like those of others", async () => {
  let settled = 0;
  const settle = async (): Promise<void> => {
    await setImmediate();
    settled++;
  };
  const { checks, run } = await jaxContestant("0", settle).prepare(withValues(product));
  expect(checks).toHaveLength(16);
  for (const times of [1, 2]) {
    await run();
    expect(settled).toBe(times);
  }
});

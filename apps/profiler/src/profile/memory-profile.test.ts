import { add, exp, matmul, optimize, planMemory, reshape, sum, type Tensor, trace } from "@skein/tensor-core";
import { expect, test } from "vitest";
import { memoryProfile } from "./memory-profile.ts";

const profileOf = (fn: (x: Tensor) => unknown): ReturnType<typeof memoryProfile> => {
  const { graph: traced } = trace(fn as never, [{ dtype: "f32", shape: [64, 64] }] as never);
  const graph = optimize(traced);
  const plan = planMemory(graph);
  return memoryProfile({ graph, plan, settled: plan.settled, stateInputs: 1 }, 1000);
};

test("the most that is alive is what the plan's bound says, and never more than the workspace", () => {
  const profile = profileOf((x) => {
    const a = matmul(x, x);
    const b = matmul(a, x);
    return sum(exp(add(matmul(b, a), b)));
  });
  expect(profile.residentBytes).toBe(1000);
  expect(Math.max(...profile.liveBytes)).toBeLessThanOrEqual(profile.workspaceBytes);
  expect(Math.max(...profile.liveBytes)).toBe(3 * 4 * 64 * 64); // a, b and their product
});

test("a view counts once, with what it looks at", () => {
  const profile = profileOf((x) => {
    const flat = reshape(matmul(x, x), [4096]);
    return sum(reshape(matmul(reshape(flat, [64, 64]), x), [4096]));
  });
  expect(profile.blocks.map(({ bytes }) => bytes)).toEqual([4 * 4096, 4 * 4096]);
  expect(Math.max(...profile.liveBytes)).toBe(2 * 4 * 4096);
});

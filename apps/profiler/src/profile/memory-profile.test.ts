import { add, concat, exp, matmul, multiply, reshape, sum, type Tensor, trace } from "@skein/tensor-core";
import { optimize, planMemory } from "@skein/tensor-core/backend";
import { expect, test } from "vitest";
import { memoryProfile } from "./memory-profile.ts";

const profileOf = (fn: (x: Tensor) => unknown): ReturnType<typeof memoryProfile> => {
  const { graph: traced } = trace(fn as never, [{ dtype: "f32", shape: [64, 64] }] as never);
  const graph = optimize(traced);
  const plan = planMemory(graph);
  return memoryProfile({ graph, plan, settled: plan.settled, stateInputs: 1 }, 1000);
};

test("the peak equals the bound of the plan, and never exceeds the workspace", () => {
  const profile = profileOf((x) => {
    const a = matmul(x, x);
    const b = matmul(a, x);
    return sum(exp(add(matmul(b, a), b)));
  });
  expect(profile.residentBytes).toBe(1000);
  expect(Math.max(...profile.liveBytes)).toBeLessThanOrEqual(profile.workspaceBytes);
  expect(Math.max(...profile.liveBytes)).toBe(3 * 4 * 64 * 64); // a, b and their product
});

test("a view counts once, together with its base", () => {
  const profile = profileOf((x) => {
    const flat = reshape(matmul(x, x), [4096]);
    return sum(reshape(matmul(reshape(flat, [64, 64]), x), [4096]));
  });
  expect(profile.blocks.map(({ bytes }) => bytes)).toEqual([4 * 4096, 4 * 4096]);
  expect(Math.max(...profile.liveBytes)).toBe(2 * 4 * 4096);
});

test("curve and blocks match a graph computed by hand", () => {
  const kibibytes = (bytes: number): number => bytes / 1024;
  const profile = profileOf((x) => {
    const early = matmul(x, x); // node 1: 16 KiB, in use until its product at node 7
    const wide = matmul(x, concat([x, x], { dim: 1 })); // concat is node 2, and its product is node 3: 32 KiB each
    const narrow = matmul(reshape(wide, [128, 64]), x); // reshape is node 4, without memory; node 5: 32 KiB
    const back = matmul(reshape(narrow, [64, 128]), reshape(wide, [128, 64])); // node 7: 16 KiB
    return sum(matmul(back, early)); // nodes 8 and 9
  });
  expect(profile.liveBytes.map(kibibytes)).toEqual([0, 16, 48, 80, 48, 80, 80, 96, 48, 16]);
  expect(profile.blocks.map(({ name, shape, bytes, from, to }) => [name, shape, kibibytes(bytes), from, to])).toEqual([
    ["concat", "f32[64, 128]", 32, 2, 3],
    ["matmul", "f32[64, 128]", 32, 3, 7], // in use as long as its view is used
    ["matmul", "f32[128, 64]", 32, 5, 7],
    ["matmul", "f32[64, 64]", 16, 1, 8],
    ["matmul", "f32[64, 64]", 16, 7, 8],
    ["matmul", "f32[64, 64]", 16, 8, 9],
  ]);
  // All blocks alive at the peak are listed.
  const atPeak = profile.blocks.filter(({ from, to }) => from <= 7 && 7 <= to);
  expect(atPeak.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(96 * 1024);
});

test("if there are too many values to list, those at the peak are included", () => {
  const profile = profileOf((x) => {
    const wide = Array.from({ length: 50 }, (_, i) =>
      sum(matmul(multiply(x, i + 2), concat([x, x], { dim: 1 }))),
    ).reduce((all, one) => add(all, one));
    const kept = Array.from({ length: 30 }, () => 0).reduce<Tensor[]>(
      (list) => [...list, matmul(list.at(-1) ?? x, x)],
      [],
    );
    return add(wide, sum(kept.reduceRight((all, one) => matmul(all, one))));
  });
  const peak = profile.liveBytes.indexOf(Math.max(...profile.liveBytes));
  const named = profile.blocks
    .filter(({ from, to }) => from <= peak && peak <= to)
    .reduce((sum, { bytes }) => sum + bytes, 0);
  expect(named).toBeGreaterThan(0.99 * profile.liveBytes[peak]!); // all bytes except a few scalars
});

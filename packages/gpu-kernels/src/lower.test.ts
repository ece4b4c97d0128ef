import { minimalDevice as facts } from "./minimal-device.ts";
import {
  add,
  concat,
  exp,
  matmul,
  reshape,
  softmax,
  sum,
  type Tensor,
  trace,
  type TensorSpec,
} from "@skein/tensor-core";
import { kernelNodeOf, optimize, planMemory } from "@skein/tensor-core/backend";
import { describe, expect, test } from "vitest";
import type { KernelChoices } from "./kernel.ts";
import { kernels } from "./kernel-table.ts";
import { type DispatchStep, lower, type Lowered, regionsOf } from "./lower.ts";
import { checkSupport } from "./support.ts";
import { gridGroups } from "./shader.ts";

const spec = (shape: readonly number[], dtype: TensorSpec["dtype"] = "f32"): TensorSpec => ({ dtype, shape });

const lowered = (
  fn: (...args: Tensor[]) => Tensor | Tensor[],
  specs: readonly TensorSpec[],
  choices: KernelChoices = {},
  donate: number[] = [],
): Lowered => {
  const graph = optimize(trace(fn, specs as never).graph, { fuse: { maxOperands: facts.maxBindings } });
  const plan = planMemory(graph, { donate, alignment: 256, viewAlignment: 256, maxSlabBytes: facts.maxBufferBytes });
  return lower(graph, plan, facts, choices);
};

const dispatches = ({ steps }: Lowered): DispatchStep[] => steps.filter((step) => step.kind === "dispatch");

describe("lowering", () => {
  test.each([1, 65_535, 65_536, 10_000_000])(
    "a pass of %i workgroups has a grid that is large enough, and guarded if it is larger",
    (rows) => {
      // Each row of this length is processed by one workgroup.
      const graph = optimize(trace((x: Tensor) => softmax(x), [spec([rows, 1024])] as never).graph);
      const { passes } = kernels["softmax"]!.plan(kernelNodeOf(graph, graph.nodes[1]!), facts, {}, []);
      expect(passes[0]!.groups).toBe(rows);
      const [step] = dispatches(lowered((x) => softmax(x), [spec([rows, 1024])], { workPerSubmission: Infinity }));
      const [slice] = step!.slices;
      const groups = gridGroups(slice!.grid);
      expect(groups).toBeGreaterThanOrEqual(rows);
      expect(slice!.grid.every((size) => size <= 65_535)).toBe(true);
      expect(step!.code.includes(`if (local_group >= ${rows}u) { return; }`)).toBe(groups > rows);
    },
  );

  test("splits long dispatches into slices that cover every workgroup once", () => {
    const whole = dispatches(lowered((x) => exp(x), [spec([1_000_003])], { workPerSubmission: Infinity }))[0]!;
    const total = gridGroups(whole.slices[0]!.grid);
    for (const workPerSubmission of [1e3, 1e5, 3e6]) {
      const [step] = dispatches(lowered((x) => exp(x), [spec([1_000_003])], { workPerSubmission }));
      const words = step!.slices.map((slice) => slice.words!);
      expect(words.length).toBeGreaterThan(1);
      expect(step!.work / words.length).toBeLessThanOrEqual(
        workPerSubmission * (1 + words.length / total) + step!.work / total,
      );
      let next = 0;
      for (const [first, groups] of words) {
        expect(first).toBe(next);
        next += groups;
      }
      expect(next).toBe(total);
      expect(step!.bindingKinds.at(-1)).toBe("uniform");
      expect(step!.code).toContain("slice.first");
    }
  });

  test("keeps a dispatch within the limit in one piece", () => {
    const [step] = dispatches(lowered((x) => exp(x), [spec([1000])]));
    expect(step!.slices).toHaveLength(1);
    expect(step!.code).not.toContain("slice");
  });

  test("bindings are aligned, inside their regions, and never empty", () => {
    const result = lowered(
      (x, y, z) => [softmax(add(x, 1)), matmul(y, x), sum(z), concat([reshape(x, [12]), reshape(y, [15])], { dim: 0 })],
      [spec([3, 4]), spec([5, 3]), spec([0, 7])],
    );
    const { scratch, constants } = regionsOf(result.slabBytes.length, 3, 4);
    for (const { variables } of dispatches(result))
      for (const { at } of variables) {
        expect(at.offset % facts.bindingAlignment).toBe(0);
        expect(at.bytes).toBeGreaterThan(0);
        expect(at.bytes % 16).toBe(0);
        if (at.region < scratch) expect(at.offset + at.bytes).toBeLessThanOrEqual(result.slabBytes[at.region]!);
        if (at.region === scratch) expect(at.offset + at.bytes).toBeLessThanOrEqual(result.scratchBytes);
        if (at.region === constants) expect(at.offset + at.bytes).toBeLessThanOrEqual(result.constantBytes);
      }
  });

  test("nodes without result elements run nothing", () => {
    expect(lowered((x) => softmax(add(x, 1)), [spec([0, 5])]).steps).toEqual([]);
  });

  test("reports both numbers if a device cannot bind a value", () => {
    const graph = optimize(trace((x: Tensor) => exp(x), [spec([2 ** 25 + 1])] as never).graph);
    expect(() => checkSupport(graph, facts)).toThrow(/134217732 bytes.*bind 134217728 \(maxStorageBufferBindingSize\)/);
    expect(() => checkSupport(graph, { ...facts, maxBindingBytes: 2 ** 28 })).not.toThrow();
  });
});

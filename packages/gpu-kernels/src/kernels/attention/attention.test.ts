import { NdArray } from "@skein/tensor-core";
import { operators } from "@skein/tensor-core/backend";
import { assertClose, normalArray } from "@skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasAdapter, openBackend } from "../../../test/gpu.ts";
import { minimalDevice } from "../../minimal-device.ts";
import { checkNode, planNode, runNode } from "../../../test/run-node.ts";
import { runPlan } from "../../../test/run-plan.ts";
import type { WebGpuBackend } from "../../index.ts";
import type { KernelPlan } from "../../kernel.ts";
import { attentionNode } from "./attention-node.ts";
import { attentionBackward } from "./backward.ts";
import { attentionForward } from "./forward.ts";
import { attentionNaive } from "./naive.ts";
import { attentionRefusal } from "./refusal.ts";
import { attentionTile, tileBytes } from "./tile.ts";

type Sizes = readonly [batch: number, heads: number, queries: number, keys: number, width: number];

const operands = ([batch, heads, queries, keys, width]: Sizes, factor = 1, dtype: "f32" | "f16" = "f32"): NdArray[] => {
  const q = normalArray([batch, heads, queries, width], 1);
  // Every seventh entry is an outlier.
  for (let i = 3; i < q.data.length; i += 7) q.data[i] = factor * q.data[i]!;
  const arrays = [q, normalArray([batch, heads, keys, width], 2), normalArray([batch, heads, keys, width], 3)];
  return dtype === "f32" ? arrays : arrays.map((array) => NdArray.from(array.toNumbers(), array.shape, "f16"));
};

const paramsOf = ([, , , , width]: Sizes, causal: boolean): { causal: boolean; scale: number } => ({
  causal,
  scale: 1 / Math.sqrt(width),
});

/** Returns operands of the backward pass: the reference's result and logsumexp, and a gradient. */
const backwardOperands = (inputs: readonly NdArray[], params: { causal: boolean; scale: number }): NdArray[] => {
  const specs = operators["attention"]!.infer(inputs, params);
  const data = operators["attention"]!.reference(
    inputs.map((array) => ({ spec: array, data: Float64Array.from(array.toNumbers()) })),
    params,
    specs,
  );
  const [out, sums] = specs.map((spec, i) => NdArray.from(Array.from(data[i]!), spec.shape, spec.dtype));
  const g = normalArray(inputs[0]!.shape, 4);
  return [...inputs, out!, sums!, NdArray.from(g.toNumbers(), g.shape, inputs[0]!.dtype)];
};

const long: Sizes = [1, 1, 8192, 8192, 64];

describe("attention without a device", () => {
  test.each([16_384, 32_768, 49_152])("every width has a tile within %d bytes", (maxWorkgroupBytes) => {
    for (let width = 1; width <= 512; width++) {
      for (const demand of [
        { rowOperands: 1, results: 1, exchanges: true },
        { rowOperands: 2, results: 1, exchanges: false },
        { rowOperands: 2, results: 2, exchanges: false },
      ]) {
        const tile = attentionTile(width, 12, 1024, demand, { ...minimalDevice, maxWorkgroupBytes });
        expect(tileBytes(tile, demand), `width ${width}`).toBeLessThanOrEqual(maxWorkgroupBytes);
        expect(tile.rowLanes * tile.columnLanes, `width ${width}`).toBeLessThanOrEqual(256);
      }
    }
  });

  test("heads of 64 are complete rows in 32 KiB, and use large tiles in more memory", () => {
    const demand = { rowOperands: 1, results: 1, exchanges: true };
    const tileAt = (maxWorkgroupBytes: number, lines: number) =>
      attentionTile(64, lines, 1024, demand, { ...minimalDevice, maxWorkgroupBytes });
    expect(tileAt(32_768, 12)).toMatchObject({ rowLanes: 8, resident: true });
    expect(tileAt(49_152, 96)).toMatchObject({ rowLanes: 16, resident: true });
    expect(tileAt(49_152, 1)).toMatchObject({ rowLanes: 8, resident: true });
  });

  test.each([false, true])("no plan stores a queries × keys matrix (software: %s)", (software) => {
    const facts = { ...minimalDevice, software };
    const [q, k, v] = Array.from(
      { length: 3 },
      () => ({ dtype: "f32", shape: long.filter((_, i) => i !== 3) }) as const,
    );
    const sums = { dtype: "f32", shape: long.slice(0, 3) } as const;
    const params = paramsOf(long, true);
    expect(planNode("attention", [q!, k!, v!], params, facts).scratch ?? []).toEqual([]);
    expect(planNode("attention-backward", [q!, k!, v!, q!, sums, q!], params, facts).scratch).toEqual([4 * 8192]);
  });

  test("rejects half precision without device support, and very wide heads", () => {
    const node = (dtype: "f32" | "f16", width: number) => {
      const spec = { dtype, shape: [1, 1, 4, width] } as const;
      return { op: "attention", inputs: [spec, spec, spec], outputs: [], params: {} };
    };
    expect(attentionRefusal(node("f16", 8), minimalDevice)).toMatch(/f16\[1, 1, 4, 8\] needs half precision/);
    expect(attentionRefusal(node("f16", 8), { ...minimalDevice, f16: true })).toBeUndefined();
    expect(attentionRefusal(node("f32", 513), minimalDevice)).toMatch(/513 wide, at most 512/);
  });
});

describe.skipIf(!hasAdapter)("attention on a device", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  const tolerance = { absolute: 2e-5, relative: 2e-5 };

  /** Runs a hand-written plan and compares its results with the reference. */
  const checkPlan = async (
    plan: KernelPlan,
    op: string,
    inputs: readonly NdArray[],
    params: { causal: boolean; scale: number },
  ): Promise<void> => {
    const specs = operators[op]!.infer(inputs, params);
    const expected = operators[op]!.reference(
      inputs.map((array) => ({ spec: array, data: Float64Array.from(array.toNumbers()) })),
      params,
      specs,
    );
    const bits = await runPlan(backend.device, plan, inputs, specs);
    specs.forEach((spec, i) =>
      assertClose(
        new NdArray(spec.dtype, spec.shape, new Float32Array(bits[i]!)),
        { spec, data: expected[i]! },
        plan.passes[0]!.label,
        tolerance,
      ),
    );
  };

  // A software adapter takes half a minute for code that a GPU's compiler unrolls in a moment. Therefore only one width
  // is tested; all sizes of this width share the shaders.
  const shapes: readonly Sizes[] = [
    [1, 1, 1, 1, 5],
    [2, 1, 33, 70, 5],
    [1, 1, 70, 33, 5],
  ];

  test("tiles at default limits, with outliers and more or fewer keys than queries", async () => {
    for (const sizes of shapes) {
      const inputs = operands(sizes, 20);
      const params = paramsOf(sizes, true);
      await checkNode(backend, "attention", inputs, params, {
        facts: minimalDevice,
        tolerance: { absolute: 1e-4, relative: 1e-4 },
      });
      const gradients = { facts: minimalDevice, tolerance: { absolute: 1e-3, relative: 1e-3 } };
      await checkNode(backend, "attention-backward", backwardOperands(inputs, params), params, gradients);
    }
  }, 600_000);

  // Checks the same kernels with loops that are not unrolled.
  const checkTilesOf = async (width: number): Promise<void> => {
    const sizes: Sizes = [1, 1, 37, 70, width];
    const [inputs, params] = [operands(sizes), paramsOf(sizes, false)];
    const node = attentionNode({ op: "attention", inputs, outputs: [], params });
    const facts = { ...minimalDevice, software: true };
    await checkPlan(attentionForward(node, facts), "attention", inputs, params);
    await checkPlan(attentionBackward(node, facts), "attention-backward", backwardOperands(inputs, params), params);
  };
  test("tiles of heads 80 wide at default limits", { tags: "full", timeout: 600_000 }, () => checkTilesOf(80));
  test("tiles of heads 256 wide at default limits", { tags: "full", timeout: 600_000 }, () => checkTilesOf(256));

  test("complete rows in workgroup memory of 32 KiB", async () => {
    const sizes: Sizes = [1, 1, 67, 67, 64];
    const [inputs, params] = [operands(sizes), paramsOf(sizes, true)];
    const node = attentionNode({ op: "attention", inputs, outputs: [], params });
    const facts = { ...minimalDevice, software: true, maxWorkgroupBytes: 32_768 };
    if (backend.facts.maxWorkgroupBytes < facts.maxWorkgroupBytes) return;
    const plans = [attentionForward(node, facts), attentionBackward(node, facts)] as const;
    for (const { label } of plans.flatMap(({ passes }) => passes)) expect(label).not.toContain(" by ");
    await checkPlan(plans[0], "attention", inputs, params);
    await checkPlan(plans[1], "attention-backward", backwardOperands(inputs, params), params);
  }, 600_000);

  const checkHalves = async (width: number, software: boolean): Promise<void> => {
    const sizes: Sizes = [1, 2, 9, 11, width];
    const [inputs, params] = [operands(sizes, 1, "f16"), paramsOf(sizes, true)];
    const checks = {
      facts: { ...minimalDevice, f16: true, software },
      tolerance: { absolute: 2e-3, relative: 2e-3 },
    };
    await checkNode(backend, "attention", inputs, params, checks);
    await checkNode(backend, "attention-backward", backwardOperands(inputs, params), params, checks);
  };
  test("f16 rows of 5 values, also rows that share words", () => checkHalves(5, true));
  test.each([6, 8])("f16 rows of %d values, also rows that share words", { tags: "full" }, (width) =>
    checkHalves(width, true),
  );
  // Unrolled loops take ten times as long to compile. Tested for a width whose rows share words.
  test("f16 rows of 5 values in unrolled loops, as for a GPU", { tags: "full", timeout: 600_000 }, () =>
    checkHalves(5, false),
  );

  test("2048 positions agree with a few rows in f64", async () => {
    const sizes: Sizes = [1, 1, 2048, 2048, 64];
    const [inputs, params] = [operands(sizes, 20), paramsOf(sizes, true)];
    const [out, sums] = await runNode(backend, "attention", inputs, params, { facts: backend.facts, runs: 2 });
    const [q, k, v] = inputs.map((array) => array.toNumbers());
    for (const row of [0, 1, 31, 1000, 2047]) {
      const scores = Array.from({ length: row + 1 }, (_, j) => {
        let dot = 0;
        for (let d = 0; d < 64; d++) dot += q![row * 64 + d]! * k![j * 64 + d]!;
        return dot * params.scale;
      });
      const largest = Math.max(...scores);
      const total = scores.reduce((sum, score) => sum + Math.exp(score - largest), 0);
      expect(sums!.toNumbers()[row]).toBeCloseTo(largest + Math.log(total), 4);
      for (const d of [0, 33, 63]) {
        const expected = scores.reduce(
          (sum, score, j) => sum + (Math.exp(score - largest) / total) * v![j * 64 + d]!,
          0,
        );
        expect(out!.toNumbers()[row * 64 + d]).toBeCloseTo(expected, 4);
      }
    }
  });

  test("gradients have the same bits in every run", async () => {
    const sizes: Sizes = [1, 2, 70, 90, 5];
    const [inputs, params] = [operands(sizes, 20), paramsOf(sizes, true)];
    for (const facts of [minimalDevice, { ...minimalDevice, software: true }]) {
      await runNode(backend, "attention-backward", backwardOperands(inputs, params), params, { facts, runs: 2 });
    }
  }, 600_000);

  /**
   * Returns batch entries with four query heads and two key heads. The spans of keys and the starts are inside tiles,
   * and one entry has no key.
   */
  const limitedOperands = (keys: number, lengths: readonly number[]): NdArray[] => {
    const batch = lengths.length;
    const starts = lengths.map((length) => length - 40);
    /** Returns keys or values with NaN after the lengths. The NaN must not affect the result. */
    const cached = (seed: number): NdArray => {
      const array = normalArray([batch, 2, keys, 12], seed);
      array.data.forEach((_, i) => {
        if (Math.floor(i / 12) % keys >= lengths[Math.floor(i / (2 * keys * 12))]!) array.data[i] = NaN;
      });
      return array;
    };
    return [
      normalArray([batch, 4, 40, 12], 1),
      cached(2),
      cached(3),
      NdArray.from([...lengths, ...starts], [2, batch], "i32"),
    ];
  };

  const checkLimits = async (causal: boolean): Promise<void> => {
    const params = { causal, scale: 0.3 };
    const [q, k, v, limits] = limitedOperands(90, [83, 0, 41]) as [NdArray, NdArray, NdArray, NdArray];
    const inputs = [q, k, v, limits];
    const [out, sums, g] = backwardOperands(inputs, params).slice(inputs.length) as [NdArray, NdArray, NdArray];
    const backward = [q, k, v, out, sums, g, limits];
    const [node, backwardNode] = [
      attentionNode({ op: "attention", inputs, outputs: [], params }),
      attentionNode({ op: "attention-backward", inputs: backward, outputs: [], params }),
    ];
    const facts = { ...minimalDevice, software: true };
    await checkPlan(attentionForward(node, facts), "attention", inputs, params);
    await checkPlan(attentionNaive(node), "attention", inputs, params);
    await checkPlan(attentionBackward(backwardNode, facts), "attention-backward", backward, params);
    await checkNode(backend, "attention-backward", backward, params, { facts, tolerance });
  };
  test("limits and grouped heads, causal, in tiles, in rows and in the definition", () => checkLimits(true), 600_000);
  test(
    "limits and grouped heads, not causal, in tiles, in rows and in the definition",
    { tags: "full", timeout: 600_000 },
    () => checkLimits(false),
  );

  test("the naive variant is the definition", async () => {
    const sizes: Sizes = [1, 2, 9, 5, 3];
    for (const causal of [false, true]) {
      const [inputs, params] = [operands(sizes), paramsOf(sizes, causal)];
      const node = attentionNode({ op: "attention", inputs, outputs: [], params });
      await checkPlan(attentionNaive(node), "attention", inputs, params);
    }
  });
});

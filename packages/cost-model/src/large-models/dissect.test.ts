import { describe, expect, test } from "vitest";
import { hardwareNamed, shippedHardware } from "../hardware/shipped/index.ts";
import { architectures, modelNamed } from "./architectures.ts";
import { dissect } from "./dissect.ts";
import type { Dissection } from "./dissection.ts";
import { parameterCount } from "./modules.ts";

const configurations = [
  { task: "training", batchPerRank: 2, zeroStage: 3, recomputation: "full" },
  { task: "inference", batch: 2 },
] as const;

describe.each(configurations)("a dissection of $task", (configuration) => {
  const sum = <Row>(rows: readonly Row[], figure: (row: Row) => number): number =>
    rows.reduce((total, row) => total + figure(row), 0);
  const cases = architectures.map((shape, index) => {
    const hardware = shippedHardware[index % shippedHardware.length]!;
    return [shape.name, shape, dissect(shape, configuration, hardware)] as const;
  });

  test.each(cases)(
    "of %s adds up by module as by operator",
    (_, shape, { modules, operators, parameters, memory, memoryBytes, training }) => {
      for (const figure of ["seconds", "flops", "bytes", "share"] as const) {
        const [byModule, byOperator] = [sum(modules, (row) => row[figure]), sum(operators, (row) => row[figure])];
        expect(Math.abs(byModule / byOperator - 1)).toBeLessThan(1e-9);
      }
      // Prefill and decode have the same modules, so the modules of one of the two are enough.
      const once = modules.filter(({ pass }) => pass !== "decode");
      expect(sum(once, (row) => row.parameters)).toBe(parameters);
      expect(parameters).toBe(parameterCount(shape));
      expect(sum(memory, ({ bytes }) => bytes)).toBeCloseTo(memoryBytes, 0);
      if (training !== undefined) {
        const { exposedSeconds, stepSeconds } = training;
        expect(sum(modules, ({ share }) => share) + exposedSeconds / stepSeconds).toBeCloseTo(1, 9);
      }
      expect(operators.map(({ seconds }) => seconds)).toEqual(
        operators.map(({ seconds }) => seconds).toSorted((a, b) => b - a),
      );
    },
  );

  test("is plain data without undefined values, and lists its assumptions", () => {
    for (const [, , dissection] of cases) {
      // The dissection contains only finite values: JSON would turn all others into null.
      expect(JSON.parse(JSON.stringify(dissection))).toEqual(dissection);
      expect(dissection.assumptions.length).toBeGreaterThan(3);
      for (const sentence of dissection.assumptions) expect(sentence).toMatch(/^[^\n]{15,}\.$/);
    }
  });
});

test("the assumptions mention a device without the operand type of products", () => {
  const assumptionsOf = (precision: "mixed-bf16" | "mixed-f16"): string =>
    dissect(
      modelNamed("gpt-2"),
      { task: "training", batchPerRank: 1, precision },
      hardwareNamed("v100"),
    ).assumptions.join(" ");
  expect(assumptionsOf("mixed-bf16")).toContain("no peak for bf16");
  expect(assumptionsOf("mixed-f16")).not.toContain("no peak");
});

test("the assumptions mention sequences beyond the model's context", () => {
  const assumptionsOf = (sequenceLength: number): string =>
    dissect(
      modelNamed("llama-2-7b"),
      { task: "training", batchPerRank: 1, sequenceLength },
      hardwareNamed("a800"),
    ).assumptions.join(" ");
  expect(assumptionsOf(8192)).toContain("8192 tokens are longer than the model's context of 4096");
  expect(assumptionsOf(4096)).not.toContain("longer than");
});

test("equal layers are one row", () => {
  const { modules, item, ranks } = dissect(
    modelNamed("llama-2-7b"),
    { task: "training", batchPerRank: 1 },
    hardwareNamed("a800"),
  );
  expect(modules.map(({ part, repeats, module }) => `${part} × ${repeats}: ${module}`)).toEqual([
    "embedding × 1: embedding",
    "layer × 32: attention norm",
    "layer × 32: query, key, value",
    "layer × 32: rotary positions",
    "layer × 32: attention",
    "layer × 32: output projection",
    "layer × 32: attention residual",
    "layer × 32: feed-forward norm",
    "layer × 32: gate and up",
    "layer × 32: activation",
    "layer × 32: down",
    "layer × 32: feed-forward residual",
    "head × 1: final norm",
    "head × 1: head",
    "head × 1: loss",
    "optimizer × 1: update",
  ]);
  expect([item, ranks]).toEqual(["token", 8]);
});

test("memory is listed by kind, largest first", () => {
  const offload = { linkBytesPerSecond: 32e9, hostMemoryBytesPerSecond: 400e9 };
  const kinds = ({ memory }: Dissection): readonly string[] => memory.map(({ kind }) => kind);
  const training = { task: "training", batchPerRank: 1, sequenceLength: 512, zeroStage: 2 } as const;
  const llama = modelNamed("llama-2-7b");
  const a800 = hardwareNamed("a800");
  expect(kinds(dissect(llama, training, a800))).toEqual([
    "weights",
    "optimizer states",
    "activations",
    "gradients",
    "workspace",
    "communication buffers",
  ]);
  expect(kinds(dissect(llama, { ...training, offload }, a800))).not.toContain("optimizer states");
  expect(kinds(dissect(llama, { task: "inference", batch: 1 }, a800))).toEqual([
    "weights",
    "key value cache",
    "workspace",
  ]);
  expect(() => dissect(llama, { task: "serving" } as never, a800)).toThrow(
    "task is serving, but must be one of training, inference",
  );
});

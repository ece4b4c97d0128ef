import { NdArray, type TensorSpec } from "@skein/tensor-core";
import { threefryWord } from "@skein/tensor-core/backend";
import { seeded } from "@skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { hasAdapter, openBackend } from "../../../test/gpu.ts";
import { runPlan } from "../../../test/run-plan.ts";
import type { WebGpuBackend } from "../../webgpu-backend.ts";
import { fillPass } from "./fill.ts";
import { iotaPass } from "./iota.ts";
import { oneHotPass } from "./one-hot.ts";
import { foldInPass, randomBitsPass } from "./threefry.ts";

const u8 = (...shape: number[]): TensorSpec => ({ dtype: "u8", shape });

describe("passes that generate values", () => {
  test("stay within WebGPU's default limits", () => {
    const passes = [
      fillPass(u8(1000), 3),
      iotaPass("f32", [10, 20], 1),
      oneHotPass(u8(7, 9)),
      randomBitsPass(1e6),
      foldInPass,
    ];
    for (const { workgroupSize, bindings, features } of passes) {
      expect(workgroupSize).toBeLessThanOrEqual(256);
      expect(bindings.length).toBeLessThanOrEqual(8);
      expect(features ?? []).toEqual([]);
    }
  });

  test("share pipelines: one for all fills, one for streams of any length, one for counts over any number of rows", () => {
    expect(fillPass(u8(1000), 3).code).toBe(fillPass({ dtype: "bf16", shape: [3, 5] }, -0.5).code);
    expect(randomBitsPass(5).code).toBe(randomBitsPass(50_000).code);
    expect(iotaPass("i32", [7, 20], 0).code).toBe(iotaPass("i32", [70, 20], 0).code);
  });

  test("narrow values fill complete words", () => {
    expect(fillPass({ dtype: "bool", shape: [5] }, 1).sizes).toEqual({ vectors: 1, word: 0x01010101 });
    expect(fillPass({ dtype: "f16", shape: [9] }, 1).sizes).toEqual({ vectors: 2, word: 0x3c003c00 });
  });
});

describe.skipIf(!hasAdapter)("values generated on WebGPU", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  test("random words equal the host's, also at the end of a long stream", async () => {
    const key = NdArray.from([0x9e3779b9, 17], [2], "u32");
    for (const count of [1, 255, 256, 511, 1_000_003]) {
      const plan = { passes: [randomBitsPass(count)] };
      const [first] = await runPlan(backend.device, plan, [key], [{ dtype: "u32", shape: [count] }]);
      const [second] = await runPlan(backend.device, plan, [key], [{ dtype: "u32", shape: [count] }]);
      expect(new Uint8Array(first!)).toEqual(new Uint8Array(second!));
      const words = new Uint32Array(first!);
      const step = Math.max(1, Math.floor(count / 997));
      for (let i = 0; i < count; i += step) expect(words[i]).toBe(threefryWord(key.data, i));
      expect(words[count - 1]).toBe(threefryWord(key.data, count - 1));
    }
  });

  test.each([37, 36])("one-hot rows over more than 65,535 workgroups, depth %i", async (depth) => {
    const rows = Math.ceil((65_536 * 128 * 4) / depth) + 3;
    const random = seeded(3);
    const indices = Int32Array.from({ length: rows }, () => Math.floor(random() * (depth + 4)) - 2);
    const spec = u8(rows, depth);
    const pass = oneHotPass(spec);
    expect(pass.groups).toBeGreaterThan(65_535);
    const [result] = await runPlan(backend.device, { passes: [pass] }, [new NdArray("i32", [rows], indices)], [spec]);
    const bytes = new Uint8Array(result!);
    let ones = 0;
    for (const byte of bytes) ones += byte;
    expect(ones).toBe(indices.filter((index) => index >= 0 && index < depth).length);
    expect(indices.findIndex((index, row) => index >= 0 && index < depth && bytes[row * depth + index] !== 1)).toBe(-1);
  });
});

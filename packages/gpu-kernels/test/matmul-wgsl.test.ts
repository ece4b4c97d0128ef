import { expect, test } from "vitest";
import type { DeviceFacts } from "../src/kernel.ts";
import { matmulVariants } from "../src/kernels/matmul/variants.ts";
import { openNodeGpu } from "../src/node.ts";
import { shaderModule } from "../src/shader.ts";

const facts: DeviceFacts = {
  adapter: "none",
  software: false,
  f16: true,
  subgroups: true,
  minSubgroupSize: 32,
  maxSubgroupSize: 32,
  timestamps: true,
  subgroupMatrices: [{ operands: "f16", result: "f32", rows: 16, columns: 16, inner: 16 }],
  maxWorkgroupSize: 256,
  maxWorkgroupBytes: 16384,
  maxBindings: 8,
  maxBindingBytes: 2 ** 27,
  maxBufferBytes: 2 ** 28,
  bindingAlignment: 256,
};

// WebGPU instance of all tests. It must outlive its devices, because an instance that is garbage-collected too early
// aborts the process.
const instance = openNodeGpu(["backend=null"]);

// Dawn's null backend supports every feature and executes no commands, so its compiler checks shaders that no adapter
// of this machine can run.
test("every variant compiles with every feature, including subgroup matrices", async () => {
  const adapter = (await (await instance).requestAdapter())!;
  const device = await adapter.requestDevice({
    requiredFeatures: [
      "shader-f16",
      "subgroups",
      "chromium-experimental-subgroup-matrix",
    ] as unknown as GPUFeatureName[],
  });
  const seen = new Set<string>();
  const matrixShapes = [16, 8].map(
    (size) => ({ operands: "f16", result: "f32", rows: size, columns: size, inner: size }) as const,
  );
  for (const variant of matmulVariants)
    for (const layout of [0, 1, 2, 3])
      for (const [dtype, resultDtype] of [
        ["f32", "f32"],
        ["f16", "f16"],
        ["f16", "f32"],
      ] as const)
        for (const shape of matrixShapes)
          for (const [rows, columns, inner] of [
            [64, 64, 2048],
            [67, 61, 2049],
            [1, 64, 2048],
            [1, 63, 2047],
          ] as const) {
            const product = {
              batch: 2,
              rows,
              columns,
              inner,
              transposeA: layout > 1,
              transposeB: layout % 2 === 1,
              dtype,
              resultDtype,
            };
            const here = { ...facts, subgroupMatrices: [shape] };
            if (!variant.supports(product, here)) continue;
            for (const pass of variant.plan(product, here).passes) {
              const variables = pass.bindings.map(({ name, type, access }) => ({
                name,
                type,
                writable: access === "write",
              }));
              const code = shaderModule({ pass, variables, renamed: new Map(), guarded: true, sliced: true });
              if (seen.has(code)) continue;
              seen.add(code);
              device.pushErrorScope("validation");
              const module = device.createShaderModule({ code });
              device.createComputePipeline({ layout: "auto", compute: { module, entryPoint: "entry" } });
              const error = await device.popErrorScope();
              if (error !== null) throw new Error(`${pass.label}: ${error.message}\n${code}`);
              // Warnings also fail the test: use of deprecated builtins, or uniformity that could not be proven.
              expect(
                (await module.getCompilationInfo()).messages.map(({ message }) => message),
                pass.label,
              ).toEqual([]);
            }
          }
  expect([...seen].some((code) => code.includes("subgroupMatrixMultiplyAccumulate"))).toBe(true);
  device.destroy();
});

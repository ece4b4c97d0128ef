import { checkGradientValues, checkValues, composedOperatorCases, sinh } from "@skein/testing";
import { add, silu, type Tensor, trace } from "@skein/tensor-core";
import { describe, expect, test } from "vitest";
import { minimalDevice, shadersOf } from "../src/index.ts";
import { hasAdapter, openBackend } from "./gpu.ts";

const shaders = (fn: (x: Tensor) => Tensor): readonly string[] =>
  shadersOf(trace(fn, [{ dtype: "f32", shape: [8] }] as never).graph, minimalDevice).map(({ code }) => code);

describe("an elementwise operator with a composition, on WebGPU", () => {
  test("runs in the same shader as its neighbours, and as an instruction if there is one", () => {
    const [code, ...rest] = shaders((x) => add(sinh(add(x, 1)), x));
    expect(rest).toEqual([]);
    expect(code).toMatch(/tanh_of\(r/);
    expect(code).not.toContain("sinh");
    expect(shaders((x) => silu(x)).join()).toMatch(/silu_of\(r/);
  });

  test.skipIf(!hasAdapter)("equals the reference on this machine's adapter, in value and gradient", async () => {
    const backend = await openBackend();
    try {
      for (const row of composedOperatorCases) {
        await checkValues(row, backend, { subnormals: "flushed" });
        if (row.gradient !== undefined) await checkGradientValues(row, backend);
      }
    } finally {
      backend.close();
    }
  });
});

import { createCpuBackend, createSharedMemory, prepareForCpu } from "@skein/cpu-kernels";
import { checkGradientValues, checkValues, composedOperatorCases, sinh } from "@skein/testing";
import { add, type Backend, silu, type Tensor, trace } from "@skein/tensor-core";
import { beforeAll, describe, expect, test } from "vitest";

/** Returns the operators of the compiled graph; instead of a fused program, its instructions. */
const opsOf = (fn: (x: Tensor) => Tensor): readonly string[] =>
  prepareForCpu(trace(fn, [{ dtype: "f32", shape: [8] }] as never).graph).nodes.map(({ op, params }) =>
    op === "fused" ? (params["instructions"] as readonly { readonly op: string }[]).map((each) => each.op).join() : op,
  );

describe("an elementwise operator with a composition, on the CPU", () => {
  let backend: Backend;
  beforeAll(async () => {
    backend = await createCpuBackend({ memory: createSharedMemory(64 * 2 ** 20) });
  });

  test.each(composedOperatorCases.map((row) => [row.name, row] as const))("%s", async (_, row) => {
    await checkValues(row, backend);
    if (row.gradient !== undefined) await checkGradientValues(row, backend);
  });

  test("runs in the same fused program as its neighbours, and as an instruction if there is one", () => {
    const [input, program, ...rest] = opsOf((x) => add(sinh(add(x, 1)), x));
    expect([input, rest]).toEqual(["input", []]);
    expect(program).toMatch(/add.*tanh/);
    expect(program).not.toContain("sinh");
    expect(opsOf((x) => silu(x))).toEqual(["input", "silu"]);
  });
});

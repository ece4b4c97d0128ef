import { createCpuBackend, createSharedMemory } from "@skein/cpu-kernels";
import { checkGradientValues, checkValues, composedCases } from "@skein/testing";
import type { Backend } from "@skein/tensor-core";
import { beforeAll, describe, test } from "vitest";

// Tests only one build, because builds differ only in kernels, which have their own rows.
describe("functions made of operators, on the fastest build", () => {
  let backend: Backend;
  beforeAll(async () => {
    backend = await createCpuBackend({ memory: createSharedMemory(64 * 2 ** 20) });
  });

  test.each(composedCases.map((row) => [`${row.op}: ${row.name}`, row] as const))("%s", async (_, row) => {
    await checkValues(row, backend);
    if (row.gradient !== undefined) await checkGradientValues(row, backend);
  });
});

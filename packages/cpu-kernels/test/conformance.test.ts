import { createCpuBackend, createSharedMemory, type WasmBuild } from "@skein/cpu-kernels";
import { checkGradientValues, checkValues, conformanceCases } from "@skein/testing";
import { operators } from "@skein/tensor-core";
import { beforeAll, describe, expect, test } from "vitest";
import type { Backend } from "@skein/tensor-core";

const builds: readonly WasmBuild[] = ["relaxed", "simd", "scalar"];

describe.each(builds)("conformance of the %s build", (build) => {
  let backend: Backend;
  beforeAll(async () => {
    backend = await createCpuBackend({ build, memory: createSharedMemory(512 * 2 ** 20) });
  });

  test.each(conformanceCases.map((row) => [`${row.op}: ${row.name}`, row] as const))("%s", async (_, row) => {
    await checkValues(row, backend);
    if (row.gradient !== undefined) await checkGradientValues(row, backend);
  });
});

test("every operator has a row", () => {
  const covered = new Set(conformanceCases.map((row) => row.op));
  // Made by trace or by passes, and exercised by every other row; collectives have laws and parity tests of their own.
  const structural = ["input", "collective-start", "collective-done"];
  const missing = Object.values(operators).filter(
    (operator) => operator.collective === undefined && !structural.includes(operator.name) && !covered.has(operator.name),
  );
  expect(missing.map((operator) => operator.name)).toEqual([]);
});

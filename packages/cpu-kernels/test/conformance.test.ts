import { createCpuBackend, createSharedMemory, type WasmBuild } from "@skein/cpu-kernels";
import { checkGradientValues, checkValues, type ConformanceCase, conformanceCases } from "@skein/testing";
import { beforeAll, describe, test } from "vitest";
import type { Backend } from "@skein/tensor-core";
import { createGuardedBackend } from "./guarded-backend.ts";

const planned = (build: WasmBuild): Promise<Backend> =>
  createCpuBackend({ build, memory: createSharedMemory(512 * 2 ** 20) });
const inPlace = conformanceCases.filter(({ op }) => op === "fused");

/**
 * Backends to test. The fastest build runs as in programs. The other builds run with guards around every value, which
 * detect writes out of bounds. The vectors of the relaxed build and the plain build read and write the same bytes.
 * Every build also runs with values that share memory in the plan.
 */
const runs: readonly (readonly [name: string, open: () => Promise<Backend>, rows: readonly ConformanceCase[]])[] = [
  ["the relaxed build", () => planned("relaxed"), conformanceCases],
  ["the simd build, guarded", () => createGuardedBackend("simd"), conformanceCases],
  ["the scalar build, guarded", () => createGuardedBackend("scalar"), conformanceCases],
  ["the simd build, in place", () => planned("simd"), inPlace],
  ["the scalar build, in place", () => planned("scalar"), inPlace],
];

describe.each(runs)("conformance of %s", (_, open, rows) => {
  let backend: Backend;
  beforeAll(async () => {
    backend = await open();
  });

  test.each(rows.map((row) => [`${row.op}: ${row.name}`, row] as const))("%s", async (_, row) => {
    await checkValues(row, backend);
    if (row.gradient !== undefined) await checkGradientValues(row, backend);
  });
});

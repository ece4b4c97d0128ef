import { checkGradientValues, checkValues, conformanceCases } from "@skein/testing";
import { afterAll, beforeAll, describe, test } from "vitest";
import type { WebGpuBackend } from "../src/index.ts";
import { hasAdapter, openBackend } from "./gpu.ts";

describe.skipIf(!hasAdapter)("conformance on WebGPU", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  test.each(conformanceCases.map((row) => [`${row.op}: ${row.name}`, row] as const))("%s", async (_, row) => {
    await checkValues(row, backend);
    if (row.gradient !== undefined) await checkGradientValues(row, backend);
  });
});

import { checkRows, rowCases } from "@skein/testing";
import { afterAll, beforeAll, describe, test } from "vitest";
import type { WebGpuBackend } from "../src/index.ts";
import { hasAdapter, openBackend } from "./gpu.ts";

describe.skipIf(!hasAdapter)("rows do not depend on other rows on WebGPU", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  test.each(rowCases.map((row) => [row.name, row] as const))("%s", async (_, row) => {
    await checkRows(row, backend);
  });
});

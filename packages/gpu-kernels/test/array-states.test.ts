import { arrayStateScenarios } from "@skein/testing";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { WebGpuBackend } from "../src/index.ts";
import { hasAdapter, openBackend } from "./gpu.ts";

describe.skipIf(!hasAdapter)("arrays borrowed by runs on WebGPU", () => {
  let backend: WebGpuBackend;
  beforeAll(async () => {
    backend = await openBackend();
  });
  afterAll(() => backend.close());

  test.each(Object.entries(arrayStateScenarios))("%s", async (_, run) => {
    await run({ ...backend, held: backend.bytesInUse }, (actual, wanted, what) => expect(actual, what).toEqual(wanted));
  });
});

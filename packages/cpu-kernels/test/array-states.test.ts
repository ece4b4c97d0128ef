import { createCpuBackend, createSharedMemory } from "@skein/cpu-kernels";
import { arrayStateScenarios } from "@skein/testing";
import { expect, test } from "vitest";

test.each(Object.entries(arrayStateScenarios))("%s", async (_, run) => {
  const backend = await createCpuBackend({ memory: createSharedMemory(64 * 2 ** 20) });
  await run({ ...backend, held: () => backend.arena.bytesInUse }, (actual, wanted, what) =>
    expect(actual, what).toEqual(wanted),
  );
});

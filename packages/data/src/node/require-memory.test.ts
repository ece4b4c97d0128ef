import { freemem } from "node:os";
import { afterEach, expect, test, vi } from "vitest";
import { cachedBytes, freeMemory, memoryFigures, requireMemory } from "./require-memory.ts";

afterEach(() => vi.restoreAllMocks());

test("free memory is the machine's, or the container's if it has less", () => {
  vi.spyOn(process, "availableMemory").mockReturnValue(Number.MAX_SAFE_INTEGER);
  expect(freeMemory()).toBeLessThan(Number.MAX_SAFE_INTEGER);
  expect(() => requireMemory(freemem() * 2, "the numbers", "use a smaller array")).toThrow(
    /^the numbers take [\d.]+ GiB, but only [\d.]+ GiB of memory are free; use a smaller array$/,
  );
  vi.spyOn(process, "availableMemory").mockReturnValue(2 ** 20);
  vi.spyOn(process, "constrainedMemory").mockReturnValue(0);
  expect(freeMemory()).toBe(2 ** 20);
  vi.spyOn(process, "constrainedMemory").mockReturnValue(2 ** 21);
  expect(freeMemory()).toBeLessThanOrEqual(2 ** 21);
  expect(() => requireMemory(2 ** 22, "the numbers", "use a smaller array")).toThrow("the numbers take");
});

test("the page cache of a container counts as free", () => {
  expect(cachedBytes("anon 5\nfile 99\ninactive_file 30\nactive_file 4\nworkingset_refault_file 7\n")).toBe(34);
  expect(cachedBytes("cache 9\ninactive_file 1\nactive_file 2\ntotal_inactive_file 30\ntotal_active_file 4\n")).toBe(
    34,
  );
  expect(cachedBytes("")).toBe(0);
});

test("memory figures are read from the process's own cgroup", () => {
  expect(memoryFigures("0::/\n")).toBe("/sys/fs/cgroup/memory.stat");
  expect(memoryFigures("0::/user.slice/a.scope\n")).toBe("/sys/fs/cgroup/user.slice/a.scope/memory.stat");
  expect(memoryFigures("12:cpu,cpuacct:/a\n4:memory:/docker/b\n0::/c\n")).toBe(
    "/sys/fs/cgroup/memory/docker/b/memory.stat",
  );
  expect(memoryFigures("")).toBeUndefined();
});

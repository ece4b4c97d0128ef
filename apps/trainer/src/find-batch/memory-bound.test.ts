import type { Job } from "@skein/job/node";
import { expect, test } from "vitest";
import { memoryBound, memoryOption } from "./memory-bound.ts";

const job = (settings: object): Job =>
  ({ backend: "cpu", ranks: 4, transport: "threads", network: { ranksPerProcess: 1 }, ...settings }) as Job;

const gib = 2 ** 30;

test("the minimum of the free memory, the requested limit, and the addressable memory", () => {
  expect(memoryBound(job({}), undefined, 2 * gib)).toMatchObject({ bytes: Math.floor(1.6 * gib) });
  expect(memoryBound(job({}), undefined, 100 * gib)).toMatchObject({ bytes: 4 * gib });
  expect(memoryBound(job({ transport: "tcp" }), undefined, 100 * gib)).toMatchObject({ bytes: 16 * gib });
  expect(memoryBound(job({ transport: "tcp", network: { ranksPerProcess: 3 } }), undefined, 100 * gib).bytes).toBe(
    8 * gib,
  );
  expect(memoryBound(job({}), 1 * gib, 100 * gib)).toEqual({ bytes: gib, reason: "--memory" });
  expect(memoryBound(job({}), 50 * gib, 100 * gib).bytes).toBe(4 * gib);
  expect(memoryBound(job({ backend: "webgpu" }), 50 * gib, 1).bytes).toBe(50 * gib);
  expect(() => memoryBound(job({ backend: "webgpu" }), undefined, 1)).toThrow(/give a limit, such as --memory 8GiB/);
});

test("sizes are bytes or have a binary unit", () => {
  expect(["2GiB", "1.5 MiB", "64KiB", "1000"].map(memoryOption)).toEqual([2 * gib, 1.5 * 2 ** 20, 2 ** 16, 1000]);
  for (const text of ["", "0", "-1", "2GB", "GiB", "1e9", "0.5"])
    expect(() => memoryOption(text)).toThrow(/^--memory is ".*", but must be bytes above 0, such as 2GiB/);
});

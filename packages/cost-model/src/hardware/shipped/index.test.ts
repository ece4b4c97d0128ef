import { describe, expect, test } from "vitest";
import { collectiveModelOfGroup } from "../../group-collective-model.ts";
import { collectiveSeconds } from "../../collective-model.ts";
import type { HardwareFile } from "../hardware.ts";
import { peakFlops } from "../roofline.ts";
import { hardwareNamed, shippedHardware } from "./index.ts";

const between = (value: number, least: number, most: number): void => {
  expect(value).toBeGreaterThanOrEqual(least);
  expect(value).toBeLessThanOrEqual(most);
};

describe.each(shippedHardware.map((file) => [file.name, file] as const))("%s", (_, file) => {
  const { device, links, topology } = file;

  test("has a device with plausible figures", () => {
    const { f32 } = device.flopsPerSecond;
    between(f32, 1e9, 1e15);
    // Operands with fewer bits are never slower than operands with more bits.
    for (const [narrow, wide] of [
      ["tf32", "f32"],
      ["f16", "f32"],
      ["bf16", "f32"],
      ["f8", "f16"],
      ["i8", "f16"],
      ["i4", "i8"],
    ] as const)
      expect(device.flopsPerSecond[narrow] ?? Infinity).toBeGreaterThanOrEqual(peakFlops(device, wide));
    between(device.memoryBytes, 1e9, 1e12);
    between(device.memoryBytesPerSecond, 1e9, 1e13);
    // No device reads its whole memory in less than ten milliseconds, or in more than a second.
    between(device.memoryBytes / device.memoryBytesPerSecond, 0.01, 1);
    // Devices need at least one flop per byte to be compute-bound.
    between(f32 / device.memoryBytesPerSecond, 1, 100);
    between(device.kernelStartSeconds, 1e-7, 1e-4);
    between(device.assumedEfficiency, 0.3, 1);
    expect(device.source.length).toBeGreaterThan(20);
  });

  test("has plausible links and topology", () => {
    for (const { secondsPerMessage, secondsPerByte } of [links.within, links.across]) {
      between(secondsPerMessage, 1e-6, 1e-3);
      between(1 / secondsPerByte, 0.1e9, 1e12);
      // A link is not faster than the memory from which it reads.
      expect(1 / secondsPerByte).toBeLessThan(device.memoryBytesPerSecond);
    }
    expect(links.reduceSecondsPerByte).toBeGreaterThan(0);
    expect(links.contention.penaltyPerFlow).toBeGreaterThanOrEqual(0);
    expect(links.source.length).toBeGreaterThan(20);
    expect(topology.ranks % topology.ranksPerHost).toBe(0);
  });
});

test("names are unique, and the error for an unknown name lists them", () => {
  const names = shippedHardware.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  for (const file of shippedHardware) expect(hardwareNamed(file.name)).toBe(file);
  expect(() => hardwareNamed("h200")).toThrow('no hardware is named "h200"; use one of laptop-cpu, h100-sxm');
});

test("the clusters reproduce the all-reduces from which their links were derived", () => {
  const allReduceSeconds = ({ links: link }: HardwareFile, worldSize: number, bytes: number): number => {
    const hosts = [
      ...Map.groupBy(
        Array.from({ length: worldSize }, (_, rank) => rank),
        (rank) => rank >> 2,
      ).values(),
    ];
    return collectiveSeconds(
      collectiveModelOfGroup({ worldSize, sharesMemory: false, order: "any", hosts, link }),
      bytes,
    );
  };
  const large = 2 ** 27;
  for (const [name, ranks, secondsPerByte] of [
    ["hkbu-2080ti-10gbe", 4, 2.0589e-10],
    ["hkbu-2080ti-10gbe", 8, 8.5707e-10],
    ["hkbu-2080ti-100gbib", 8, 3.0568e-10],
  ] as const)
    expect(Math.abs(allReduceSeconds(hardwareNamed(name), ranks, large) / (secondsPerByte * large) - 1)).toBeLessThan(
      0.05,
    );
  // Link between the laptop's two threads: docs/benchmarks/2026-11-21-core.md.
  const { links: link } = hardwareNamed("laptop-cpu");
  const threads = (bytes: number): number =>
    collectiveSeconds(collectiveModelOfGroup({ worldSize: 2, sharesMemory: false, hosts: [[0, 1]], link }), bytes);
  for (const [bytes, seconds] of [
    [2 ** 16, 12e-6],
    [2 ** 26, 3488e-6],
  ] as const)
    expect(Math.abs(threads(bytes) / seconds - 1)).toBeLessThan(0.3);
});

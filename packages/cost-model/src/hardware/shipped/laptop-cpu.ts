import { ethernetLinks } from "@skein/collectives";
import type { HardwareFile } from "../hardware.ts";

/**
 * Bytes and seconds of two measured all-reduces between two threads of one process: 64 MiB take 3488 µs, 64 KiB take
 * 12.0 µs (docs/benchmarks/2026-11-21-core.md).
 */
const [largeBytes, largeSeconds, smallBytes, smallSeconds] = [2 ** 26, 3488e-6, 2 ** 16, 12e-6];

/**
 * Memory bandwidth in bytes per second, derived from the large all-reduce, in which each rank reads and writes the
 * vector once (docs/experiments.md, "All-reduce between threads").
 */
const memoryBytesPerSecond = (2 * largeBytes) / largeSeconds;

/**
 * Seconds per byte of a sum, at the memory bandwidth. `secondsPerByte` excludes the time of sums: in the all-reduce,
 * each rank sends half of the vector twice (reduce-scatter and all-gather), and sums half as many bytes as it sends.
 */
const reduceSecondsPerByte = 1 / memoryBytesPerSecond;
const secondsPerByte = largeSeconds / largeBytes - reduceSecondsPerByte / 2;
const within = { secondsPerMessage: (smallSeconds - (smallBytes / largeBytes) * largeSeconds) / 2, secondsPerByte };

/**
 * Two ranks that compute with WebAssembly, with one core each and shared memory. `source` lists the values that were
 * not measured on this machine.
 */
export const laptopCpu: HardwareFile = {
  format: "skein-hardware",
  version: 1,
  name: "laptop-cpu",
  description: "two cores of 4.2 GHz with 128-bit vectors and 24 GiB, as measured in November 2026",
  device: {
    name: "one core, WebAssembly",
    kind: "cpu",
    source:
      "docs/experiments.md: peak of a core, 2 FMA × 4 lanes × 2 × 4.19 GHz; memory by the all-reduce of 64 MiB in docs/benchmarks/2026-11-21-core.md; " +
      "start of a kernel: chains of products of one element, 0.7 to 1.0 µs on 23 November 2026, on a busy machine",
    flopsPerSecond: { f32: 67e9 },
    memoryBytesPerSecond,
    memoryBytes: 12 * 2 ** 30,
    kernelStartSeconds: 0.8e-6,
    // docs/benchmarks/2026-11-21-core.md: fractions of the peak are 0.93 for matrix products of size 512, 3.1 / 3.58
    // for the MLP's step, and 25 / 33.5 for the CNN's step. The assumed efficiency is the smallest of these fractions.
    assumedEfficiency: 0.75,
    efficiencies: [],
  },
  topology: { ranks: 2, ranksPerHost: 2 },
  links: {
    within,
    across: ethernetLinks.across,
    reduceSecondsPerByte,
    source:
      "within: all-reduces of 64 KiB and 64 MiB between threads, docs/benchmarks/2026-11-21-core.md; across: not measured, as for an unmeasured 10 Gbit/s Ethernet",
    contention: { penaltyPerFlow: 0 },
  },
};

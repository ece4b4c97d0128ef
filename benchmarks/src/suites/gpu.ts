import { execFile } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { AdapterError, createWebGpuBackend } from "@skein/gpu-kernels";
import { openNodeGpu } from "@skein/gpu-kernels/node";
import { problems } from "../problems/table.ts";
import type { Row } from "../report/row.ts";
import { onGpu } from "./contestants.ts";
import { benchProblem } from "./steps.ts";

/** WebGPU adapter of this machine in Node. `software`: whether it computes on the CPU. */
interface Adapter {
  readonly name: string;
  readonly software: boolean;
}

const findAdapter = async (): Promise<Adapter | undefined> => {
  try {
    const backend = await createWebGpuBackend({ gpu: await openNodeGpu() });
    backend.close();
    return { name: backend.facts.adapter, software: backend.facts.software };
  } catch (error) {
    if (error instanceof AdapterError) return undefined;
    throw error;
  }
};

const missing = (benchmark: string, peer: string, adapter: Adapter | undefined): Row => ({
  benchmark,
  unit: "",
  ours: null,
  peer,
  peerValue: null,
  ratio: null,
  note: `not measured: ${adapter === undefined ? "no WebGPU adapter" : `${adapter.name} is software`}; this row needs a GPU`,
});

/**
 * Compares Skein with PyTorch on a large problem on this machine's GPU. Without a GPU, the row states that the GPU is
 * missing.
 */
export const benchOnGpu = async (name: string, folder: string, versions: Record<string, string>): Promise<Row[]> => {
  const adapter = await findAdapter();
  if (adapter === undefined || adapter.software) return [missing(`gpu: ${name}`, "pytorch", adapter)];
  versions["GPU"] = adapter.name;
  const { gpt } = problems[name]!;
  const tokens = gpt && gpt.batch * gpt.positions;
  return (await benchProblem(problems[name]!, folder, versions, onGpu)).map((row) => ({
    ...row,
    benchmark: `gpu: ${name}`,
    ...(tokens !== undefined && row.ours !== null && { note: `${Math.round((1000 * tokens) / row.ours)} tokens/s` }),
  }));
};

/** Output line of a kernel benchmark that runs with `--json`. */
interface KernelLine {
  readonly name: string;
  readonly seconds: number;
  readonly flops: number;
  readonly bytes: number;
  /** Throughput divided by the ceiling that limits the kernel, 0 to 1. */
  readonly share: number;
  readonly ceiling: "flops" | "copy";
  readonly ceilingPerSecond: number;
}

/** Required minimum throughput of kernels on a real GPU, as a fraction of the measured ceiling. */
const targets: Readonly<Record<KernelLine["ceiling"], number>> = { flops: 0.6, copy: 0.75 };

/**
 * Returns the paths of the benchmarks that compare kernels with a throughput ceiling. Benchmarks of other quantities
 * are omitted.
 */
const benchFiles = (): string[] =>
  globSync(fileURLToPath(new URL("../../../packages/gpu-kernels/bench/*.bench.ts", import.meta.url)))
    .filter((file) => readFileSync(file, "utf8").includes("benchKernels("))
    .sort();

/** Names of the kernel families that have a benchmark. */
export const kernelFamilies: readonly string[] = benchFiles().map((file) => basename(file, ".bench.ts"));

/**
 * Benchmarks every kernel of a family in Node, compared with the throughput of plain copy and multiply-add kernels on
 * the same adapter. Each result is checked against a CPU result before timing.
 */
export const benchKernelFamily = async (family: string, versions: Record<string, string>): Promise<Row[]> => {
  const adapter = await findAdapter();
  if (adapter === undefined) return [missing(`kernels: ${family}`, "ceiling", adapter)];
  versions["WebGPU adapter in Node"] = adapter.name;
  const file = benchFiles().find((path) => basename(path) === `${family}.bench.ts`)!;
  const { stdout } = await promisify(execFile)(process.execPath, [file, "--json"], { maxBuffer: 2 ** 24 });
  const lines = stdout
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as KernelLine);
  return lines.map(
    ({ name, seconds, flops, bytes, share, ceiling, ceilingPerSecond }): Row => ({
      benchmark: `${family}: ${name}`,
      unit: ceiling === "flops" ? "GFLOP/s" : "GB/s",
      ours: (ceiling === "flops" ? flops : bytes) / seconds / 1e9,
      peer: ceiling === "flops" ? "multiply-add" : "copy",
      peerValue: ceilingPerSecond / 1e9,
      ratio: share,
      ...(!adapter.software && { target: targets[ceiling] }),
    }),
  );
};

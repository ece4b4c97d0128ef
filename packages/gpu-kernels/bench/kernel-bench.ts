import { createCpuBackend } from "@skein/cpu-kernels";
import { formatRate, median } from "@skein/measuring";
import { firstDifference } from "@skein/testing";
import { type DeviceArray, flattenTree, type NdArray, SpanRecorder, type Tensor, trace } from "@skein/tensor-core";
import { createWebGpuBackend } from "../src/index.ts";
import { kernelSeconds } from "../src/kernel-seconds.ts";
import { openNodeGpu } from "../src/node.ts";
import { measureRoofline } from "../src/roofline.ts";

/**
 * Benchmark case of a GPU kernel: a traced function, its inputs, and the flops and bytes of one call. The benchmark
 * prints one row per case.
 */
export interface KernelRow {
  readonly name: string;
  readonly fn: (...inputs: Tensor[]) => unknown;
  readonly inputs: () => readonly NdArray[];
  /** Floating-point operations of one call; 0 for kernels that only move data. */
  readonly flops: number;
  /** Minimum number of bytes that one call reads and writes. */
  readonly bytes: number;
  /** Maximum absolute and relative difference from the result of the CPU backend. Default: 1e-3. */
  readonly tolerance?: number;
}

const samples = 11;

/**
 * Benchmarks each case: checks its results against the CPU backend, and times its kernels with device timestamps.
 * Prints the flops and bytes per second, and the larger of these rates' fractions of the device's maximum rate, which
 * is measured with simple kernels.
 */
export const benchKernels = async (title: string, rows: readonly KernelRow[]): Promise<void> => {
  const backend = await createWebGpuBackend({ gpu: await openNodeGpu() });
  const cpu = await createCpuBackend();
  const { copyBytesPerSecond, flopsPerSecond, dispatchSeconds } = await measureRoofline(backend.device);
  const json = process.argv.includes("--json");
  const only = process.argv.slice(2).find((argument) => !argument.startsWith("--"));
  if (!json) {
    console.log(`${title}: ${backend.facts.adapter}`);
    console.log(
      `ceilings: copy ${formatRate(copyBytesPerSecond, "B")}, multiply-add ${formatRate(flopsPerSecond, "FLOP")}, empty dispatch ${(1e6 * dispatchSeconds).toFixed(1)} µs`,
    );
  }
  for (const row of rows.filter(({ name }) => only === undefined || name.includes(only))) {
    const inputs = row.inputs();
    const { graph } = trace((...args: Tensor[]) => flattenTree<Tensor>(row.fn(...args)).leaves, inputs as never);
    const spanSink = new SpanRecorder();
    const executable = backend.compile(graph, { spanSink });
    const reference = cpu.compile(graph);
    const uploaded = inputs.map((input) => backend.upload(input));
    const run = async (): Promise<DeviceArray[]> => await executable.run(uploaded);

    const actual = await run();
    const onCpu = inputs.map((input) => cpu.upload(input));
    const expected = await reference.run(onCpu);
    const { tolerance = 1e-3 } = row;
    for (const [i, array] of actual.entries()) {
      const [ours, theirs] = [await backend.download(array), await cpu.download(expected[i]!)];
      const difference = firstDifference(ours.toNumbers(), theirs.toNumbers(), {
        absolute: tolerance,
        relative: tolerance,
      });
      if (difference !== undefined)
        throw new Error(`${row.name} is not timed, because it is wrong: output ${i}: ${difference}`);
      backend.free(array);
      cpu.free(expected[i]!);
    }
    for (const array of onCpu) cpu.free(array);
    reference.release();

    const times: number[] = [];
    for (let i = 0; i < samples + 2; i++) {
      spanSink.spans.length = 0;
      for (const array of await run()) backend.free(array);
      if (i >= 2) times.push(kernelSeconds(spanSink.spans));
    }
    const seconds = median(times);
    const shares = [row.flops / seconds / flopsPerSecond, row.bytes / seconds / copyBytesPerSecond] as const;
    const byFlops = shares[0] > shares[1];
    const rates = [
      ...(row.flops > 0 ? [formatRate(row.flops / seconds, "FLOP")] : []),
      formatRate(row.bytes / seconds, "B"),
    ];
    const { name, flops, bytes } = row;
    const ceiling = byFlops
      ? { ceiling: "flops", ceilingPerSecond: flopsPerSecond }
      : { ceiling: "copy", ceilingPerSecond: copyBytesPerSecond };
    if (json) console.log(JSON.stringify({ name, seconds, flops, bytes, share: Math.max(...shares), ...ceiling }));
    else
      console.log(
        `${row.name.padEnd(48)} ${(1e3 * seconds).toFixed(3).padStart(10)} ms  ${rates.join("  ").padEnd(32)} ${(100 * Math.max(...shares)).toFixed(0).padStart(4)} % of the ${byFlops ? "flop" : "copy"} ceiling`,
      );
    for (const array of uploaded) backend.free(array);
    executable.release();
  }
  backend.close();
};

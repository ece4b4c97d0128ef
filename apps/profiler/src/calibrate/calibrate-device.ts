import { totalmem } from "node:os";
import type { ComputeDevice } from "@skein/cost-model/hardware";
import { type KernelSample, learnEfficiencies } from "@skein/cost-model/calibration";
import { median } from "@skein/measuring";
import type { BackendRates } from "skein-train/profiling";

/**
 * Returns the efficiency assumed for operators and sizes that were not measured: the median of the measured
 * efficiencies, but at most 1.
 */
const assumedOf = (efficiencies: readonly { readonly efficiency: number }[]): number =>
  efficiencies.length === 0 ? 1 : Math.min(1, median(efficiencies.map(({ efficiency }) => efficiency)));

/**
 * Builds a device from measurements. Peak flops: rate of the fastest matrix product. Memory bandwidth: rate of an
 * elementwise sweep over more data than the caches can hold. Operator efficiencies are relative to the roofline with
 * these peak rates.
 */
export const calibrateDevice = (
  rates: BackendRates,
  samples: readonly KernelSample[],
  { name, kind, source }: Pick<ComputeDevice, "name" | "kind" | "source">,
): ComputeDevice => {
  const fastest = Math.max(
    rates.flopsPerSecond,
    ...samples.flatMap(({ operator, flops, seconds }) => (operator === "matmul" ? flops / seconds : [])),
  );
  const device: Omit<ComputeDevice, "efficiencies"> = {
    name,
    kind,
    source,
    flopsPerSecond: { f32: fastest },
    memoryBytesPerSecond: rates.bytesPerSecond,
    memoryBytes: totalmem(),
    kernelStartSeconds: rates.kernelSeconds,
    assumedEfficiency: 1,
  };
  const efficiencies = learnEfficiencies(device, samples);
  return { ...device, assumedEfficiency: assumedOf(efficiencies), efficiencies };
};

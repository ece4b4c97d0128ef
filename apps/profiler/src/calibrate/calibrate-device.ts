import { totalmem } from "node:os";
import { type Device, type KernelSample, learnEfficiencies } from "@skein/cost-model";
import { median } from "@skein/measuring";
import type { BackendRates } from "skein-train/profiling";

/** What is assumed of operators and sizes that were not met: the middle of what was. */
const assumedOf = (efficiencies: readonly { readonly efficiency: number }[]): number =>
  efficiencies.length === 0 ? 1 : Math.min(1, median(efficiencies.map(({ efficiency }) => efficiency)));

/**
 * Make a device of what was measured. Its peak is the fastest product, its bandwidth a sweep over more than the caches
 * hold, and each operator has the shares of that roofline that it was seen to reach.
 */
export const calibrateDevice = (
  rates: BackendRates,
  samples: readonly KernelSample[],
  { name, kind, source }: Pick<Device, "name" | "kind" | "source">,
): Device => {
  const fastest = Math.max(
    rates.flopsPerSecond,
    ...samples.flatMap(({ operator, flops, seconds }) => (operator === "matmul" ? flops / seconds : [])),
  );
  const device: Omit<Device, "efficiencies"> = {
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

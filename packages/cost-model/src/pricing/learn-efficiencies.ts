import { mean } from "@skein/measuring";
import { ArgumentError } from "@skein/tensor-core";
import type { ComputeType, ComputeDevice, MeasuredEfficiency } from "../hardware/hardware.ts";
import { roofline, type Work } from "../hardware/roofline.ts";

/** A measured kernel, with the work and the seconds of one call. */
export interface KernelSample extends Work {
  readonly operator: string;
  readonly seconds: number;
  /** Operand type of products. Default: f32. */
  readonly type?: ComputeType | undefined;
}

/**
 * Returns the size of an amount in half doublings, rounded: 2 · log2 of the amount. Amounts with equal results count as
 * the same size, as in the efficiency lookup.
 */
const halfDoublings = (amount: number): number => Math.round(2 * Math.log2(Math.max(1, amount)));

/**
 * Minimum fraction of a kernel's measured time that is treated as work. Prevents a division by zero for kernels that
 * take no longer than their launch.
 */
const minWorkingShare = 0.1;

/**
 * Learns the efficiency of each operator on a device from measured kernels. Samples of one operator and one size become
 * one row: the geometric mean of roofline / (seconds − launch), and half of its 95 % confidence interval. The interval
 * follows from the standard deviation of the logarithms and a normal distribution, so it is accurate only for many
 * samples.
 *
 * Cost: O(samples).
 *
 * @throws ArgumentError if a sample has an impossible time or amount of work.
 * @example
 * ```ts
 * const { device } = hardwareNamed("a100-sxm");
 * const work = { flops: 1e12, bytes: 1e9 };
 * const [learned] = learnEfficiencies(device, [{ operator: "matmul", seconds: 0.1, ...work }]);
 * console.log(learned!.operator, learned!.efficiency.toFixed(2)); // matmul 0.51
 * ```
 */
export const learnEfficiencies = (
  device: Omit<ComputeDevice, "efficiencies">,
  samples: readonly KernelSample[],
): MeasuredEfficiency[] => {
  for (const { operator, seconds, flops, bytes } of samples)
    if (!(seconds > 0 && flops >= 0 && bytes >= 0 && Number.isFinite(seconds + flops + bytes)))
      throw new ArgumentError(
        `a sample of ${operator} has ${seconds} s for ${flops} flops and ${bytes} bytes, but times must be above 0 and work 0 or more; measure the kernel again`,
      );
  const groups = Map.groupBy(
    samples,
    ({ operator, flops, bytes }) => `${operator} ${halfDoublings(flops)} ${halfDoublings(bytes)}`,
  );
  return [...groups.values()].flatMap((own): MeasuredEfficiency[] => {
    const whole: ComputeDevice = { ...device, efficiencies: [] };
    const logs = own.flatMap((sample) => {
      const { seconds } = roofline(whole, sample, sample.type);
      const working = Math.max(sample.seconds - device.kernelStartSeconds, minWorkingShare * sample.seconds);
      return seconds > 0 ? Math.log(seconds / working) : [];
    });
    if (logs.length === 0) return []; // without work, the price is the launch time alone
    const center = mean(logs);
    const spread =
      logs.length > 1 ? Math.sqrt(mean(logs.map((log) => (log - center) ** 2)) / (logs.length - 1)) : undefined;
    const [{ operator }] = own as [KernelSample];
    return [
      {
        operator,
        flops: Math.exp(mean(own.map(({ flops }) => Math.log(Math.max(1, flops))))),
        bytes: Math.exp(mean(own.map(({ bytes }) => Math.log(Math.max(1, bytes))))),
        efficiency: Math.exp(center),
        ...(spread !== undefined && { relativeError: 1.96 * spread }),
        samples: own.length,
      },
    ];
  });
};

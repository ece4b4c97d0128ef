import { ArgumentError } from "@skein/tensor-core";
import type { ComputeType, Device, MeasuredEfficiency } from "../hardware/hardware.ts";
import { roofline, type Work } from "../hardware/roofline.ts";

/** One kernel that was measured: what one call took. */
export interface KernelSample extends Work {
  readonly operator: string;
  readonly seconds: number;
  /** Default: f32. */
  readonly type?: ComputeType | undefined;
}

/**
 * Two amounts of work are of one size where both round to the same half doubling: what the lookup takes for the same.
 */
const halfDoublings = (amount: number): number => Math.round(2 * Math.log2(Math.max(1, amount)));

const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;

/** A kernel that takes no longer than its start leaves nothing to divide by: a tenth of it is taken for the work. */
const leastWorking = 0.1;

/**
 * Learn what share of a device's roofline each operator reaches, from kernels that were measured. Samples of one
 * operator and one size become one row: the geometric mean of roofline / (seconds − start), and half of its 95 %
 * interval by the spread of the logarithms (normal, so for many samples).
 *
 * Cost: O(samples).
 *
 * @throws ArgumentError for a sample whose time or work cannot be.
 */
export const learnEfficiencies = (
  device: Omit<Device, "efficiencies">,
  samples: readonly KernelSample[],
): MeasuredEfficiency[] => {
  for (const { operator, seconds, flops, bytes } of samples)
    if (!(seconds > 0 && flops >= 0 && bytes >= 0 && Number.isFinite(seconds + flops + bytes)))
      throw new ArgumentError(
        `a sample of ${operator} says ${seconds} s for ${flops} flops and ${bytes} bytes; times are positive, work is not negative; measure it anew`,
      );
  const groups = Map.groupBy(
    samples,
    ({ operator, flops, bytes }) => `${operator} ${halfDoublings(flops)} ${halfDoublings(bytes)}`,
  );
  return [...groups.values()].flatMap((own): MeasuredEfficiency[] => {
    const whole: Device = { ...device, efficiencies: [] };
    const logs = own.flatMap((sample) => {
      const { seconds } = roofline(whole, sample, sample.type);
      const working = Math.max(sample.seconds - device.kernelStartSeconds, leastWorking * sample.seconds);
      return seconds > 0 ? Math.log(seconds / working) : [];
    });
    if (logs.length === 0) return []; // no work at all: the start is its price
    const centre = mean(logs);
    const spread =
      logs.length > 1 ? Math.sqrt(mean(logs.map((log) => (log - centre) ** 2)) / (logs.length - 1)) : undefined;
    const [{ operator }] = own as [KernelSample];
    return [
      {
        operator,
        flops: Math.exp(mean(own.map(({ flops }) => Math.log(Math.max(1, flops))))),
        bytes: Math.exp(mean(own.map(({ bytes }) => Math.log(Math.max(1, bytes))))),
        efficiency: Math.exp(centre),
        ...(spread !== undefined && { relativeError: 1.96 * spread }),
        samples: own.length,
      },
    ];
  });
};

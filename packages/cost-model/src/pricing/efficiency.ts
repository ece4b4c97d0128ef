import type { ComputeDevice } from "../hardware/hardware.ts";
import type { Work } from "../hardware/roofline.ts";

/** How an efficiency was obtained: measured at the requested size, interpolated between measured sizes, or assumed. */
export type Basis = "measured" | "interpolated" | "assumed";

/** Efficiency of a kernel relative to the roofline, in (0, 1], and how the efficiency was obtained. */
export interface Efficiency {
  readonly value: number;
  readonly basis: Basis;
}

/** Returns log2 of an amount. An amount of 0 is treated as 1, because kernels that only move data have no flops. */
const log2 = (amount: number): number => Math.log2(Math.max(1, amount));

/**
 * Returns the distance between two amounts of work: the Euclidean norm of the differences in log2(flops) and
 * log2(bytes). Doubling either flops or bytes is a distance of 1.
 */
export const workDistance = (a: Work, b: Work): number =>
  Math.hypot(log2(a.flops) - log2(b.flops), log2(a.bytes) - log2(b.bytes));

/** Maximum `workDistance` at which a single measured size is used without interpolation. */
const sameSize = 0.5;
/**
 * Maximum `workDistance` of the measured sizes used for interpolation. Kernels with more than 16 times the work use
 * other cache levels.
 */
const farthest = 4;
/** Maximum number of measured sizes to interpolate between. */
const nearest = 4;

/** Function that returns the efficiency of an operator for an amount of work. */
export type EfficiencyLookup = (operator: string, work: Work) => Efficiency;

/**
 * Builds a function that looks up efficiencies of a device. The function returns the measured value at the requested
 * size. If there is none, it interpolates between nearby sizes on a logarithmic scale, weighted by 1 / distance² in
 * doublings of flops and bytes. If there are no nearby sizes, it returns the device's assumed efficiency.
 *
 * Cost: O(sizes measured for the operator) per lookup.
 * @example
 * ```ts
 * const { device } = hardwareNamed("a100-sxm");
 * const lookup = efficiencyLookup(device);
 * console.log(lookup("matmul", { flops: 1e12, bytes: 1e9 }).basis); // assumed
 * ```
 */
export const efficiencyLookup = ({ efficiencies, assumedEfficiency }: ComputeDevice): EfficiencyLookup => {
  const byOperator = Map.groupBy(efficiencies, ({ operator }) => operator);
  return (operator, work) => {
    const around = (byOperator.get(operator) ?? [])
      .map((measured) => ({ measured, distance: workDistance(measured, work) }))
      .filter(({ distance }) => distance <= farthest)
      .sort((a, b) => a.distance - b.distance)
      .slice(0, nearest);
    const [closest] = around;
    if (closest === undefined) return { value: assumedEfficiency, basis: "assumed" };
    if (closest.distance <= sameSize) return { value: closest.measured.efficiency, basis: "measured" };
    let [sum, weights] = [0, 0];
    for (const { measured, distance } of around) {
      const weight = 1 / distance ** 2;
      sum += weight * Math.log(measured.efficiency);
      weights += weight;
    }
    return { value: Math.exp(sum / weights), basis: "interpolated" };
  };
};

import type { Device } from "../hardware/hardware.ts";
import type { Work } from "../hardware/roofline.ts";

/** How a share of the roofline was come by. */
export type Basis = "measured" | "interpolated" | "assumed";

/** Which share of the roofline a kernel reaches, in (0, 1], and how we know. */
export interface Efficiency {
  readonly value: number;
  readonly basis: Basis;
}

/** Zero counts as one: kernels that only move have no flops. */
const log2 = (amount: number): number => Math.log2(Math.max(1, amount));

/** How far two amounts of work lie apart, in doublings of flops and of bytes. */
export const workDistance = (a: Work, b: Work): number =>
  Math.hypot(log2(a.flops) - log2(b.flops), log2(a.bytes) - log2(b.bytes));

/** Work within half a doubling of what was measured is priced by that alone. */
const sameSize = 0.5;
/** Sizes further apart than that say nothing of each other: 16 times the work runs from other caches. */
const farthest = 4;
/** Of the sizes around, how many count. */
const nearest = 4;

/** Asks for the share of the roofline that an operator reaches at some work. */
export type EfficiencyLookup = (operator: string, work: Work) => Efficiency;

/**
 * Look up shares of a device's roofline: as measured at that size, else between the sizes around it, weighted by 1 /
 * distance² in doublings of flops and bytes, on a logarithmic scale; where nothing near was measured, what the device
 * is assumed to reach.
 *
 * Cost: O(sizes measured for the operator) a question.
 */
export const efficiencyLookup = ({ efficiencies, assumedEfficiency }: Device): EfficiencyLookup => {
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

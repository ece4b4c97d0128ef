import { collectivePricer, computeSeconds, type PreparedGraph, stepProgram } from "@skein/cost-model/pricing";
import type { ComputeDevice } from "@skein/cost-model/hardware";

/** Measured rates of a backend. */
export interface BackendRates {
  /** Flops per second of a matrix product of medium size. */
  readonly flopsPerSecond: number;
  /** Memory throughput of an elementwise kernel: bytes read and written per second. */
  readonly bytesPerSecond: number;
  /** Fixed overhead of one kernel, in seconds. */
  readonly kernelSeconds: number;
}

/** Returns a device model in which all operators reach the measured rates. */
export const deviceOfRates = (
  { flopsPerSecond, bytesPerSecond, kernelSeconds }: BackendRates,
  { name, kind, memoryBytes }: Pick<ComputeDevice, "name" | "kind" | "memoryBytes">,
): ComputeDevice => ({
  name,
  kind,
  source: "measured in a moment: one product, one sweep over memory, a chain of small kernels",
  flopsPerSecond: { f32: flopsPerSecond },
  memoryBytesPerSecond: bytesPerSecond,
  memoryBytes,
  kernelStartSeconds: kernelSeconds,
  assumedEfficiency: 1,
  efficiencies: [],
});

/** Cost function that returns zero seconds for every collective, as for a single rank. */
const freeCollectives = collectivePricer({ worldSize: 1, sharesMemory: true });

/**
 * Estimates the total time of the kernels of a prepared step in seconds. Collectives are not included.
 *
 * @param axes mesh axes along which the graph communicates.
 */
export const estimateSeconds = (
  prepared: PreparedGraph,
  rates: BackendRates,
  kind: ComputeDevice["kind"],
  axes: readonly string[],
): number =>
  computeSeconds(
    stepProgram(prepared, {
      device: deviceOfRates(rates, { name: kind, kind, memoryBytes: 0 }),
      collectives: Object.fromEntries(axes.map((axis) => [axis, freeCollectives])),
    }),
  );

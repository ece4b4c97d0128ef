import { collectivePricer, computeSeconds, type Device, type PreparedGraph, stepProgram } from "@skein/cost-model";

/** Measured rates of a backend. */
export interface BackendRates {
  /** Flops per second of a matrix product of medium size. */
  readonly flopsPerSecond: number;
  /** Bytes read and written per second by an elementwise kernel. */
  readonly bytesPerSecond: number;
  /** Overhead of a kernel, in seconds. */
  readonly kernelSeconds: number;
}

/** A device model that reaches the measured rates in every operator. */
export const deviceOfRates = (
  { flopsPerSecond, bytesPerSecond, kernelSeconds }: BackendRates,
  { name, kind, memoryBytes }: Pick<Device, "name" | "kind" | "memoryBytes">,
): Device => ({
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

/** Collectives that take no time. */
const freeCollectives = collectivePricer({ worldSize: 1, sharesMemory: true });

/**
 * Estimated seconds of the kernels of a prepared step, without collectives.
 *
 * @param axes of the mesh along which the graph communicates.
 */
export const estimateSeconds = (
  prepared: PreparedGraph,
  rates: BackendRates,
  kind: Device["kind"],
  axes: readonly string[],
): number =>
  computeSeconds(
    stepProgram(prepared, {
      device: deviceOfRates(rates, { name: kind, kind, memoryBytes: 0 }),
      collectives: Object.fromEntries(axes.map((axis) => [axis, freeCollectives])),
    }),
  );

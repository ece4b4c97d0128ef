import { collectivePricer, computeSeconds, type Device, type PreparedGraph, stepProgram } from "@skein/cost-model";

/** What a backend gets through, measured. */
export interface BackendRates {
  /** Of a product of middling size. */
  readonly flopsPerSecond: number;
  /** Of an elementwise kernel, read and written. */
  readonly bytesPerSecond: number;
  /** What a kernel costs beside its work. */
  readonly kernelSeconds: number;
}

/** A device that reaches what was measured, whatever the operator. */
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

/** Nothing else is waited for. */
const free = collectivePricer({ worldSize: 1, sharesMemory: true });

/**
 * Seconds of the kernels of a prepared step. Collectives are left out.
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
      collectives: Object.fromEntries(axes.map((axis) => [axis, free])),
    }),
  );

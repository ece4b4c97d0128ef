import { type Graph, nodeCost, type Tensor, trace, type TensorSpec } from "@skein/tensor-core";
import { type Parts, stateSpecs } from "./train-state.ts";
import { trainStep } from "./train-step.ts";

/** What a backend gets through, measured. */
export interface BackendRates {
  /** Of a product of middling size. */
  readonly flopsPerSecond: number;
  /** Of an elementwise kernel, read and written. */
  readonly bytesPerSecond: number;
  /** What a kernel costs beside its work. */
  readonly kernelSeconds: number;
}

/** The graph of one training step on one rank's part of a batch, as it is traced. @param fields specs of one sample. */
export const stepGraph = (
  parts: Parts,
  fields: { readonly [name: string]: { readonly dtype: string; readonly shape: readonly number[] } },
  batchPerRank: number,
): Graph => {
  const batch = Object.fromEntries(
    Object.entries(fields).map(([name, { dtype, shape }]) => [name, { dtype, shape: [batchPerRank, ...shape] } as TensorSpec]),
  );
  const state = stateSpecs(parts);
  return trace(trainStep(parts, parts.compressorAt(0)) as unknown as (...args: Tensor[]) => unknown, [state as never, batch as never], {
    mesh: parts.mesh,
  }).graph;
};

/** Seconds of one run of a graph that was prepared for the backend: each kernel takes what it costs anyway, and the longer of its flops and its bytes. Collectives are left out. */
export const estimateSeconds = (graph: Graph, { flopsPerSecond, bytesPerSecond, kernelSeconds }: BackendRates): number =>
  graph.nodes
    .filter(({ op }) => op !== "input" && !op.startsWith("collective"))
    .map((node) => nodeCost(graph, node))
    .reduce(
      (seconds, { flops, bytesRead, bytesWritten }) =>
        seconds + kernelSeconds + Math.max(flops / flopsPerSecond, (bytesRead + bytesWritten) / bytesPerSecond),
      0,
    );

import { secondsOf, type WorldStep } from "@skein/report";
import { isKernel, type KernelSample, nodeWork, type PreparedGraph } from "@skein/cost-model";
import { median } from "@skein/measuring";
import { spanNameOf } from "@skein/tensor-core/backend";
import { sum } from "../sum.ts";

/**
 * Tell what each kernel of a prepared step took, one sample a node: its median over steps and ranks, all of them
 * lengthened alike until they add up to the median of what a rank computes in a step. Times of kernels have a long
 * tail, and so the medians alone add up to too little. Spans come in the graph's order; where they do not, as on a
 * device that runs several passes for a node, the step is left out.
 */
export const kernelSamples = (
  steps: readonly WorldStep[],
  prepared: PreparedGraph,
  overheadSeconds: number,
): KernelSample[] => {
  const kernels = prepared.graph.nodes
    .filter((node) => isKernel(prepared, node))
    .map((node) => ({ name: spanNameOf(node.op, node.scope), operator: node.op, ...nodeWork(prepared.graph, node) }));
  const runs = steps.flat().flatMap(({ spans }) => {
    const computed = spans.filter(({ track }) => track === "compute");
    const fits = computed.length === kernels.length && computed.every(({ name }, i) => name === kernels[i]!.name);
    return fits ? [computed.map(secondsOf)] : [];
  });
  if (runs.length === 0) return [];
  const medians = kernels.map((_, i) => median(runs.map((run) => run[i]!)));
  const scale = median(runs.map(sum)) / Math.max(1e-9, sum(medians));
  return kernels.map(({ operator, flops, bytes }, i) => ({
    operator,
    flops,
    bytes,
    // The clock may be coarser than the least kernels.
    seconds: Math.max(1e-9, scale * medians[i]! - overheadSeconds / 2),
  }));
};

import { isKernel, type KernelSample, nodeWork, type PreparedGraph } from "@skein/cost-model";
import { median } from "@skein/measuring";
import { spanNameOf } from "@skein/tensor-core";
import { secondsOf, type WorldStep } from "./steps.ts";

/**
 * Tell what each kernel of a prepared step took, one sample a node: the median over steps and ranks. Spans come in the graph's order; where they do not, as
 * on a device that runs several passes for a node, the step is left out.
 */
export const kernelSamples = (steps: readonly WorldStep[], prepared: PreparedGraph, overheadSeconds: number): KernelSample[] => {
  const kernels = prepared.graph.nodes
    .filter((node) => isKernel(prepared, node))
    .map((node) => ({ name: spanNameOf(node.op, node.scope), operator: node.op, ...nodeWork(prepared.graph, node) }));
  const runs = steps.flat().flatMap(({ spans }) => {
    const computed = spans.filter(({ track }) => track === "compute");
    const fits = computed.length === kernels.length && computed.every(({ name }, i) => name === kernels[i]!.name);
    return fits ? [computed.map(secondsOf)] : [];
  });
  if (runs.length === 0) return [];
  return kernels.map(({ operator, flops, bytes }, i) => ({
    operator,
    flops,
    bytes,
    // The clock may be coarser than the least kernels.
    seconds: Math.max(1e-9, median(runs.map((run) => run[i]!)) - overheadSeconds / 2),
  }));
};

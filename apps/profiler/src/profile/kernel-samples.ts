import { secondsOf, type WorldStep } from "@skein/report";
import { isKernel, nodeWork, type PreparedGraph } from "@skein/cost-model/pricing";
import type { KernelSample } from "@skein/cost-model/calibration";
import { median } from "@skein/measuring";
import { spanNameOf } from "@skein/tensor-core/backend";
import { sum } from "../sum.ts";

/**
 * Returns the measured time of each kernel node of a prepared step: the median over steps and ranks. All times are
 * scaled by the same factor, so that they add up to the median computing time of a rank's step. Without scaling, the
 * sum of medians would be too small, because kernel times have a long tail. Steps whose spans do not match the order of
 * the graph are skipped, as on a device that runs several passes per node.
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
    // The clock resolution may be coarser than the shortest kernels.
    seconds: Math.max(1e-9, scale * medians[i]! - overheadSeconds / 2),
  }));
};

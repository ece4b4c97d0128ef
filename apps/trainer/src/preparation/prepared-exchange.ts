import { bucketOf, bucketPerTensor, type BucketTensor, specsByPath } from "@skein/compressors";
import type { PreparedGraph } from "@skein/cost-model/pricing";
import { prepareForCpu } from "@skein/cpu-kernels";
import { type DeviceFacts, planForWebGpu, prepareForWebGpu } from "@skein/gpu-kernels";
import { meshOf, replicasAxisOf } from "@skein/job/node";
import { buildCompression, type ExchangePlan } from "@skein/step/node";
import {
  add,
  axisIndex,
  flattenTree,
  inPhase,
  randomKey,
  scope,
  type Tensor,
  type TensorSpec,
  trace,
} from "@skein/tensor-core";
import { planMemory } from "@skein/tensor-core/backend";
import type { Prepared } from "./prepared.ts";

/** A gradient, and the mesh axis over which the gradient is averaged. */
export interface GradientTensor extends BucketTensor {
  readonly axis: string;
}

/** Returns the gradient tensors of a job with one bucket per tensor, indexed by bucket number. */
export const gradientTensors = ({
  job,
  trained,
  sharding,
}: Pick<Prepared, "job" | "trained" | "sharding">): readonly GradientTensor[] => {
  const specs = specsByPath(trained);
  const axisOf = replicasAxisOf({ sharding, mesh: meshOf(job) });
  return bucketPerTensor(trained).map(([path]) => ({
    path: path!,
    shape: specs.get(path!)!.shape,
    axis: axisOf(path!),
  }));
};

/**
 * Traces the exchange of some gradients in a single bucket, without the rest of the step, as in the last step of the
 * job. The nodes of the exchange have the scope `exchange-0`. The mean gradient is then added to another tensor. This
 * addition represents the optimizer, which reads the mean.
 *
 * @param tensors Gradients that are averaged over the same ranks.
 * @param plan Densities by path, if the compression has densities.
 */
export const traceExchange = (
  { job, totalSteps, own }: Pick<Prepared, "job" | "totalSteps" | "own">,
  tensors: readonly GradientTensor[],
  { device, plan }: { readonly device?: DeviceFacts | undefined; readonly plan?: ExchangePlan | undefined },
): PreparedGraph => {
  const bucket = bucketOf(tensors);
  const { axis } = tensors[0]!;
  const compressor = buildCompression(job.compression, plan, own.compression)(totalSteps - 1);
  const mesh = meshOf(job);
  const key = randomKey(0);
  const vector: TensorSpec = { dtype: "f32", shape: bucket.shape };
  let state: unknown;
  trace(
    (x: Tensor) => {
      state = compressor.init(bucket);
      return [x, state];
    },
    [vector as never],
    { mesh },
  );
  const { graph } = trace(
    (gradient: Tensor, weights: Tensor, before: unknown, drawKey: Tensor, step: Tensor) => {
      const context = { axis, step, key: drawKey, rank: axisIndex(axis) };
      const { mean, state: after } = inPhase("communication", () =>
        scope("exchange-0", () => compressor.aggregate(gradient, before, bucket, context)),
      );
      return [add(weights, mean), after];
    },
    [vector, vector, state, key, { dtype: "u32", shape: [] }] as never,
    { mesh },
  );
  const stateLeaves = flattenTree<TensorSpec>(state).leaves.length;
  const donate = Array.from({ length: 2 + stateLeaves }, (_, i) => i);
  if (device === undefined) {
    const ready = prepareForCpu(graph);
    return { graph: ready, settled: planMemory(ready, { donate }).settled };
  }
  const ready = prepareForWebGpu(graph, device);
  return { graph: ready, settled: planForWebGpu(ready, device, donate).settled };
};

import { dataAxis, everyRankAxis, expertAxis, expertReplicasAxis, type Job } from "@skein/job/node";
import type { LabelledBatch } from "@skein/models";
import type { Routing } from "@skein/moe-parallel/routing";
import {
  allGather,
  axisIndex,
  type Backend,
  type Communicators,
  type DeviceArray,
  foldIn,
  InvariantError,
  jit,
  type Tensor,
} from "@skein/tensor-core";
import { passesFor } from "../step/compiled-steps.ts";
import type { DeviceState, Parts } from "../step/train-state.ts";

export interface ProbeInput {
  readonly job: Job;
  readonly parts: Parts;
  readonly backend: Backend;
  readonly communicators: Communicators;
}

/** A forward pass that returns the experts chosen by tokens and does not change any state. */
export interface RoutingProbe {
  /**
   * Returns one routing per expert layer, with the tokens of all ranks. Tokens are ordered by the rank's coordinate
   * along the expert axis, then by replica. Must be called on all ranks; returns the same result on all ranks.
   *
   * @param batch This rank's share of the batch.
   * @param numExperts Number of experts of each layer.
   */
  (state: DeviceState, batch: object, numExperts: number): Promise<readonly Routing[]>;
  release(): void;
}

/**
 * Compiles a forward pass that returns the experts chosen by tokens.
 * @param parts Components of the job, with a model that reports the chosen experts.
 */
export const routingProbe = ({ job, parts, backend, communicators }: ProbeInput): RoutingProbe => {
  const { experts } = parts.model;
  if (experts === undefined) throw new InvariantError("a model without experts was asked for their routing");
  // If every rank has all experts, the mesh has no expert axis, and tokens are ordered by rank.
  const axes = parts.mesh[expertAxis] === undefined ? [everyRankAxis(parts.mesh)] : [expertReplicasAxis, expertAxis];
  const gathered = (x: Tensor): Tensor => axes.reduce((all, axis) => allGather(all, axis), x);
  const compiled = jit(
    (
      state: Pick<DeviceState, "params" | "model"> & { readonly key: Tensor; readonly step: Tensor },
      inputs: Tensor,
    ) => {
      // Derived like the step's random key but with another number, so that noisy gates also draw noise here.
      const key = foldIn(foldIn(foldIn(state.key, state.step), 3), axisIndex(dataAxis));
      return experts.choices(state.params, state.model, inputs, { train: true, key }).map(gathered);
    },
    backend,
    { mesh: parts.mesh, communicators, passes: passesFor(job), name: "routing probe" },
  );
  const call = compiled as unknown as (state: object, inputs: unknown) => Promise<readonly DeviceArray[]>;
  const probe = async (
    { params, model, key, step }: DeviceState,
    batch: object,
    numExperts: number,
  ): Promise<readonly Routing[]> => {
    const choicesByLayer = await call({ params, model, key, step }, (batch as LabelledBatch).inputs);
    const routings: Routing[] = [];
    for (const array of choicesByLayer) {
      const choices = Int32Array.from((await backend.download(array)).toNumbers());
      routings.push({ numExperts, numChoices: array.shape[1]!, choices });
      backend.free(array);
    }
    return routings;
  };
  return Object.assign(probe, { release: () => compiled.release() });
};

import { ArgumentError } from "../errors.ts";
import { replay } from "../tracing/replay.ts";
import type { Tensor } from "../graph/tensor.ts";
import type { Stage } from "./stage.ts";

/** What a stage is given in its forward pass. */
export interface StageInputs {
  /** Its own parameters: the leaves that `stage.params` numbers. */
  readonly params: readonly Tensor[];
  readonly args: readonly Tensor[];
  /** What the stage before has handed on. */
  readonly incoming: readonly Tensor[];
}

/** What a stage has computed, and what its backward pass is then given of it. */
export interface StageForward {
  readonly outgoing: readonly Tensor[];
  /** The further results that `stage.aux` numbers. */
  readonly aux: readonly Tensor[];
  readonly kept: readonly Tensor[];
}

const requireCount = (caller: string, what: string, given: readonly unknown[], wanted: number): void => {
  if (given.length !== wanted)
    throw new ArgumentError(
      `${caller}: ${given.length} ${what} were given to a stage that takes ${wanted}; give one for each, in the order of the stage`,
    );
};

/**
 * Apply the forward pass of a stage, inside of a traced function.
 *
 * @throws ArgumentError for another number of tensors, or of other specs, than the stage takes.
 */
export const stageForward = (stage: Stage, { params, args, incoming }: StageInputs): StageForward => {
  requireCount("stageForward", "params", params, stage.params.length);
  requireCount("stageForward", "args", args, stage.args.length);
  requireCount("stageForward", "incoming values", incoming, stage.incoming.length);
  const results = replay(stage.forward, [...params, ...args, ...incoming]);
  const outgoing = results.slice(0, stage.outgoing.length);
  const aux = results.slice(outgoing.length, outgoing.length + stage.aux.length);
  const sources = { params, args, incoming, outgoing, saved: results.slice(outgoing.length + aux.length) };
  return { outgoing, aux, kept: stage.kept.map(({ from, index }) => sources[from][index]!) };
};

/**
 * Apply the backward pass of a stage, inside of a traced function: once for each time that forward was applied.
 *
 * @param kept of `stageForward`.
 * @param cotangents of those outgoing values that have one. The last stage is given the weight of the loss, such as
 * `full([], 1 / numMicroBatches)`.
 * @returns cotangents of the incoming values that have one, and gradients of `stage.params`.
 */
export const stageBackward = (
  stage: Stage,
  kept: readonly Tensor[],
  cotangents: readonly Tensor[],
): { readonly incoming: readonly Tensor[]; readonly params: readonly Tensor[] } => {
  requireCount("stageBackward", "kept values", kept, stage.kept.length);
  requireCount("stageBackward", "cotangents", cotangents, stage.outgoing.filter((one) => one.hasCotangent).length);
  const results = replay(stage.backward, [...kept, ...cotangents]);
  const numIncoming = stage.incoming.filter(({ hasCotangent }) => hasCotangent).length;
  return { incoming: results.slice(0, numIncoming), params: results.slice(numIncoming) };
};

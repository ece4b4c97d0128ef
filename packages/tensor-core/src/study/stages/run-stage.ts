import { ArgumentError } from "../../errors.ts";
import { replay } from "../../tracing/replay.ts";
import type { Tensor } from "../../graph/tensor.ts";
import type { Stage } from "./stage.ts";

/** Inputs of the forward pass of a stage. */
export interface StageInputs {
  /** Parameters of the stage: the parameter leaves with the indices `stage.params`. */
  readonly params: readonly Tensor[];
  readonly args: readonly Tensor[];
  /** Outgoing values of the previous stage; empty for the first stage. */
  readonly incoming: readonly Tensor[];
}

/** Results of a stage's forward pass, and the values that its backward pass needs. */
export interface StageForward {
  readonly outgoing: readonly Tensor[];
  /** Auxiliary results of the stage: the result leaves with the indices `stage.aux`. */
  readonly aux: readonly Tensor[];
  readonly kept: readonly Tensor[];
}

const requireCount = (caller: string, what: string, given: readonly unknown[], wanted: number): void => {
  if (given.length !== wanted)
    throw new ArgumentError(
      `${caller}: ${given.length} ${what} were given to a stage that takes ${wanted}; pass as many, in the order of the stage`,
    );
};

/**
 * Applies the forward pass of a stage, inside a traced function.
 *
 * @throws ArgumentError if the number of tensors or a spec is wrong.
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
 * Applies the backward pass of a stage, inside a traced function. Call once for each call of `stageForward`.
 *
 * @param kept The `kept` values that `stageForward` returned.
 * @param cotangents Cotangents of the outgoing values with `hasCotangent`. For the last stage, the weight of the loss,
 * such as `full([], 1 / numMicroBatches)`.
 * @returns Cotangents of the incoming values with `hasCotangent`, and gradients of `stage.params`.
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

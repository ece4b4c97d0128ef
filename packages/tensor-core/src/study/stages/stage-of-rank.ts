import { ArgumentError } from "../../errors.ts";
import { sendReceive } from "../../functions/collective.ts";
import { add, full } from "../../functions/elementwise.ts";
import { axisSize, inPhase, meshCoordinate } from "../../graph/emit.ts";
import type { Tensor } from "../../graph/tensor.ts";
import { stageBackward, stageForward, type StageForward } from "./run-stage.ts";
import type { CutStep, CutValue, Stage } from "./stage.ts";

/** Stage of one rank, including the messages from and to the adjacent ranks. */
export interface RankStage {
  readonly stage: Stage;
  /**
   * Receives the incoming values from the previous rank, runs the forward pass, and sends the outgoing values to the
   * next rank. For the last stage, `outgoing` is the loss.
   */
  forward(params: readonly Tensor[], args: readonly Tensor[]): StageForward;
  /**
   * Receives cotangents from the next rank, runs the backward pass, and sends cotangents to the previous rank. All
   * ranks must process micro-batches in the same order.
   *
   * @param weight Weight of the loss; used only in the last stage. Default: 1.
   * @returns This stage's contribution to the gradients of `stage.params`, see `sumShared`.
   */
  backward(forward: StageForward, weight?: Tensor): readonly Tensor[];
  /**
   * Sums the gradients of shared parameters over stages, with bitwise identical results on all ranks that have the
   * parameter. Call once per step, after the last micro-batch. Cost: for each shared gradient, one message to each
   * other rank that has the parameter.
   */
  sumShared(gradients: readonly Tensor[]): readonly Tensor[];
}

/**
 * Creates the stage of the traced rank. Rank s along `axis` runs stage s. The rank receives from rank s − 1 and sends
 * to rank s + 1 in the forward pass, and the reverse in the backward pass. Use in a function that is traced separately
 * per rank (`meshCoordinate`): the graphs of ranks differ, and exchange messages. For each micro-batch, call `forward`,
 * then `backward`. Calls for different micro-batches may be interleaved in any order that is equal on all ranks.
 *
 * @throws ArgumentError if the number of ranks along the axis differs from the number of stages.
 * @example
 * const step = (params: Tensor[], batches: Tensor[][]) => {
 *   const { forward, backward } = stageOfRank(cutStep, "pipeline");
 *   const passed = batches.map((batch) => forward(params, batch));
 *   return passed.map((one) => backward(one));
 * };
 */
export const stageOfRank = ({ stages, shared }: CutStep, axis: string): RankStage => {
  const size = axisSize(axis);
  if (size !== stages.length)
    throw new ArgumentError(
      `stageOfRank: axis "${axis}" has ${size} ranks for ${stages.length} stages; cut into as many stages as ranks`,
    );
  const rank = meshCoordinate(axis);
  const stage = stages[rank]!;
  const send = (values: readonly Tensor[], to: number): void => {
    for (const value of values) sendReceive(value, axis, [[rank, to]]);
  };
  const receive = (values: readonly CutValue[], from: number): Tensor[] =>
    values.map(({ spec: { dtype, shape } }) => sendReceive(full(shape, 0, dtype), axis, [[from, rank]]));
  const withCotangent = (values: readonly CutValue[]): CutValue[] => values.filter(({ hasCotangent }) => hasCotangent);
  const isFirst = rank === 0;
  const isLast = rank === stages.length - 1;
  return {
    stage,
    forward: (params, args) => {
      const result = stageForward(stage, { params, args, incoming: isFirst ? [] : receive(stage.incoming, rank - 1) });
      if (!isLast) send(result.outgoing, rank + 1);
      return result;
    },
    backward: ({ kept }, weight) =>
      inPhase("backward", () => {
        const loss = stage.outgoing[0]!.spec;
        const cotangents = isLast
          ? [weight ?? full(loss.shape, 1, loss.dtype)]
          : receive(withCotangent(stage.outgoing), rank + 1);
        const result = stageBackward(stage, kept, cotangents);
        if (!isFirst) send(result.incoming, rank - 1);
        return result.params;
      }),
    sumShared: (gradients) =>
      inPhase("communication", () =>
        gradients.map((own, i) => {
          const owners = shared.find(({ leaf }) => leaf === stage.params[i])?.stages;
          if (owners === undefined) return own;
          const parts = new Map([[rank, own]]);
          for (let step = 1; step < owners.length; step++) {
            const pairs = owners.map((from, at) => [from, owners[(at + step) % owners.length]!] as const);
            parts.set(pairs.find(([, to]) => to === rank)![0], sendReceive(own, axis, pairs));
          }
          // Add from the last stage to the first, as cotangents are added, so that all owners add in the same order.
          return owners
            .toReversed()
            .map((owner) => parts.get(owner)!)
            .reduce((sum, part) => add(sum, part));
        }),
      ),
  };
};

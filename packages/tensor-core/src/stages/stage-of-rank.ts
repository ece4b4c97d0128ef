import { ArgumentError } from "../errors.ts";
import { sendReceive } from "../functions/collective.ts";
import { add, full } from "../functions/elementwise.ts";
import { axisSize, inPhase, meshCoordinate } from "../graph/emit.ts";
import type { Tensor } from "../graph/tensor.ts";
import { stageBackward, stageForward, type StageForward } from "./run-stage.ts";
import type { CutStep, CutValue, Stage } from "./stage.ts";

/** Stage of one rank, with messages to its neighbors. */
export interface RankStage {
  readonly stage: Stage;
  /**
   * Receive the incoming values from the previous rank, compute, and send the outgoing values. For the last stage,
   * `outgoing` is the loss.
   */
  forward(params: readonly Tensor[], args: readonly Tensor[]): StageForward;
  /**
   * Receive cotangents from the next rank, compute, and send cotangents to the previous rank. All ranks call this
   * method in the same order.
   *
   * @param weight weight of the loss, for the last stage. Default: 1.
   * @returns gradients of `stage.params`: this rank's part, see `sumShared`.
   */
  backward(forward: StageForward, weight?: Tensor): readonly Tensor[];
  /**
   * Sum the gradients of parameters that several stages share, so that all of them continue with the same bits. Once
   * per step, after the last micro-batch. Cost: one message per shared gradient to each other rank that has it.
   */
  sumShared(gradients: readonly Tensor[]): readonly Tensor[];
}

/**
 * Create the stage of a rank: rank s along `axis` has stage s, receives from rank s − 1 and sends to rank s + 1; in the
 * backward pass the opposite. For a function that is traced per rank (`meshCoordinate`): the graphs of ranks differ, and are
 * connected by their messages. Micro-batches are calls of `forward`, then of `backward`, in any order that is the same
 * on all ranks.
 *
 * @throws ArgumentError if the number of ranks along the axis is not the number of stages.
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
          // From the last stage to the first, the order of cotangents: all owners add in the same order.
          return owners
            .toReversed()
            .map((owner) => parts.get(owner)!)
            .reduce((sum, part) => add(sum, part));
        }),
      ),
  };
};

import { type CollectiveParams } from "../graph/collective-params.ts";
import { sendReceive } from "../functions/collective.ts";
import type { Operator } from "../graph/operator.ts";
import { elementCount } from "../shape.ts";
import { collective } from "./shared/collective.ts";

export type SendReceiveParams = CollectiveParams & {
  readonly pairs: readonly (readonly [from: number, to: number])[];
};

/**
 * Point to point: for each pair, rank `to` gets the operand of rank `from`; a rank that nobody sends to gets zeros.
 * Adjoint: the pairs reversed.
 */
export const sendReceiveOperator: Operator = collective<SendReceiveParams>({
  name: "send-receive",
  // One end of it may well have no use for the result.
  hasEffect: () => true,
  result: (input) => input,
  world: (ranks, { pairs }, output) =>
    ranks.map((_, rank) => {
      const pair = pairs.find(([, to]) => to === rank);
      return pair === undefined ? new Float64Array(elementCount(output.shape)) : ranks[pair[0]]!.data.slice();
    }),
  vjp: ({ cotangents: [g], params: { axis, pairs, priority } }) => [
    sendReceive(
      g!,
      axis,
      pairs.map(([from, to]) => [to, from] as const),
      { priority },
    ),
  ],
});

import type { CollectiveParams } from "../graph/collective-params.ts";
import { sendReceive } from "../functions/collective.ts";
import type { Operator } from "../graph/operator.ts";
import { elementCount } from "../shape.ts";
import { collective } from "./shared/collective.ts";

export type SendReceiveParams = CollectiveParams & {
  readonly pairs: readonly (readonly [from: number, to: number])[];
};

/**
 * Point-to-point transfer: for each pair, rank `to` receives the operand of rank `from`; a rank without a sender
 * returns zeros. Adjoint: a transfer with reversed pairs.
 */
export const sendReceiveOperator: Operator = collective<SendReceiveParams>({
  name: "send-receive",
  // One of the two ranks may not use its result, but the other rank waits for this node.
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

import type { CollectiveParams } from "../graph/collective-params.ts";
import { reduceToRoot } from "../functions/collective.ts";
import type { Operator } from "../graph/operator.ts";
import { collective } from "./shared/collective.ts";

export type BroadcastParams = CollectiveParams & {
  readonly root: number;
};

/**
 * Broadcast: each rank receives the operand of rank `root`. Adjoint: the sum of all cotangents on `root`, zeros on
 * other ranks.
 */
export const broadcastOperator: Operator = collective<BroadcastParams>({
  name: "broadcast",
  isReplicated: true,
  result: (input) => input,
  world: (ranks, { root }) => ranks.map(() => ranks[root]!.data.slice()),
  vjp: ({ cotangents: [g], params: { axis, root, priority } }) => [reduceToRoot(g!, axis, root, { priority })],
});

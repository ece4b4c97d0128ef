import { raggedAllToAll } from "../functions/collective.ts";
import type { Operator } from "../graph/operator.ts";
import { raggedCollective } from "./shared/ragged-collective.ts";

/**
 * Ragged all-to-all, `[P·C, …], i32[P] → [P·C, …], i32[P]`: the first `rows[r]` rows of chunk r are sent to rank r.
 * Adjoint: a ragged all-to-all with the received counts.
 */
export const raggedAllToAllOperator: Operator = raggedCollective({
  name: "ragged-all-to-all",
  kind: "all-to-all",
  chunkPerRank: true,
  vjp: ({ outputs: [, received], cotangents: [g], params: { axis, priority } }) => [
    raggedAllToAll(g!, received!, axis, { priority }).x,
    undefined,
  ],
});

import { raggedAllToAll } from "../functions/collective.ts";
import { cast } from "../functions/elementwise.ts";
import { reshape } from "../functions/movement.ts";
import { sum } from "../functions/reduce.ts";
import type { Operator } from "../graph/operator.ts";
import { raggedCollective } from "./shared/ragged-collective.ts";

/**
 * Ragged all-gather, `[C, …], i32 → [P·C, …], i32[P]`: each rank receives the first `rows` rows of each rank. Adjoint:
 * the cotangents of this rank's rows, summed over all ranks. A ragged all-to-all sends the cotangents, because it
 * transfers only the counted rows; a reduce-scatter would transfer all rows.
 */
export const raggedAllGatherOperator: Operator = raggedCollective({
  name: "ragged-all-gather",
  kind: "all-gather",
  chunkPerRank: false,
  vjp: ({ inputs: [x], outputs: [, received], cotangents: [g], params: { axis, axisSize, priority } }) => {
    const returned = reshape(raggedAllToAll(g!, received!, axis, { priority }).x, [axisSize, ...x!.shape]);
    return [cast(sum(cast(returned, "f32"), { dims: 0 }), x!.dtype), undefined];
  },
});

import { reduceScatter } from "../functions/collective.ts";
import type { Operator } from "../graph/operator.ts";
import { elementCount } from "../shape.ts";
import { collective, leadingRows } from "./shared/collective.ts";

/**
 * All-gather, `[n, …] → [P·n, …]`: each rank receives the concatenated operands of all ranks, in rank order. Adjoint:
 * reduce-scatter.
 */
export const allGatherOperator: Operator = collective({
  name: "all-gather",
  isReplicated: true,
  result: (input, { axisSize }) => ({
    dtype: input.dtype,
    shape: [leadingRows("all-gather", input) * axisSize, ...input.shape.slice(1)],
  }),
  world: (ranks, _, output) => {
    const data = new Float64Array(elementCount(output.shape));
    ranks.forEach((rank, position) => data.set(rank.data, position * rank.data.length));
    return ranks.map(() => data);
  },
  vjp: ({ cotangents: [g], params: { axis, priority } }) => [reduceScatter(g!, axis, "sum", { priority })],
});

import { allToAll } from "../functions/collective.ts";
import type { Operator } from "../graph/operator.ts";
import { elementCount } from "../shape.ts";
import { chunkRows, collective } from "./shared/collective.ts";

/**
 * All-to-all: dimension 0 is split into P chunks. Chunk r is sent to rank r, and chunk r of the result is received from
 * rank r. The adjoint is also an all-to-all.
 */
export const allToAllOperator: Operator = collective({
  name: "all-to-all",
  result: (input, params) => {
    chunkRows("all-to-all", input, params);
    return input;
  },
  world: (ranks, _, output) => {
    const size = elementCount(output.shape);
    const chunk = size / ranks.length;
    return ranks.map((_, to) => {
      const data = new Float64Array(size);
      ranks.forEach((rank, from) => data.set(rank.data.subarray(to * chunk, (to + 1) * chunk), from * chunk));
      return data;
    });
  },
  vjp: ({ cotangents: [g], params: { axis, priority } }) => [allToAll(g!, axis, { priority })],
});

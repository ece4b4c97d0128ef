import { concat, slice } from "@skein/tensor-core";
import { levelDispatcher, type LevelMetadata } from "./level-dispatcher.ts";
import type { LevelOptions } from "./levels.ts";
import { maxTokens } from "./row-bounds.ts";
import type { TokenDispatcher } from "./token-dispatcher.ts";

/**
 * Dispatcher that sends a token only once to each group of ranks with any of its experts, instead of once per expert.
 * Along the outermost axis, each group with any of the token's experts receives one copy. The receiver is the rank with
 * the same index in its group as the sender. The receiver sends the token along the next axis in the same way. With a
 * single axis, a token is sent once to each rank with any of its experts. Each rank creates the rows of its own
 * experts. On the way back, each rank sums its experts' weighted outputs per token. Each relay rank sums received
 * results, before it sends the sum over the slower link.
 *
 * A token is sent together with its weights, so that the weights' gradients return with the token's gradient.
 *
 * Cost: for K choices `4·(D + 2·K)` bytes per copy that leaves a rank in dispatch, `4·D` in combine and `4·(D + K)` in
 * backward; per chunk `4·E·(P − 1)` bytes of counts sent per rank, and `12·(g − 1)` for each axis of g ranks. At each
 * level, a token has one copy per group with any of its experts. So along the outermost axis, the number of copies
 * never exceeds the number of rows that `raggedDispatcher` sends; over all axes together, it may. Relay ranks allocate
 * memory for the maximum number of copies.
 * @throws ArgumentError if an option is invalid, or the product of the axes is not the experts' axis.
 * @example
 * ```ts
 * const moe = moeLayer({
 *   gate: switchGate({ width: 4, numExperts: 8, numChoices: 2 }),
 *   experts: geluExperts({ width: 4, hidden: 8 }),
 *   dispatcher: duplicateFreeDispatcher({ axes: ["hosts", "inside"] }), // in a mesh { expert: 8, hosts: 2, inside: 4 }
 * });
 * console.log(moe.needsWhole); // false
 * ```
 * Source: Lin et al. 2025 (HierMoE), arXiv 2508.09591.
 */
export const duplicateFreeDispatcher = (options: LevelOptions): TokenDispatcher<LevelMetadata> =>
  levelDispatcher(
    {
      name: "duplicateFreeDispatcher",
      pack: ({ x_TD, order }, targets_TK) => ({
        x_XD: concat([x_TD, order.weights_TK], { dim: 1 }),
        targets_NK: targets_TK,
      }),
      unpack: (x_ND, width) => ({
        x_ND: slice(x_ND, [0, 0], [x_ND.shape[0]!, width]),
        weights_NK: slice(x_ND, [0, width], [...x_ND.shape]),
      }),
      orderLevels: (levels) => levels,
      targetsPerCopy: ({ numChoices }) => numChoices,
      maxCopies: maxTokens,
    },
    options,
  );

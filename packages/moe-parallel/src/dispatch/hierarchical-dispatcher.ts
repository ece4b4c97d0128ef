import { reshape } from "@skein/tensor-core";
import { levelDispatcher, type LevelMetadata } from "./level-dispatcher.ts";
import type { LevelOptions } from "./levels.ts";
import { maxEntries } from "./row-bounds.ts";
import type { TokenDispatcher } from "./token-dispatcher.ts";

/**
 * Dispatcher that sends rows in several levels, one row per token and choice. A row is first sent along the innermost
 * axis, within the sender's group, to the rank with the same index as the expert's rank. This rank then sends the rows
 * of all ranks in the group along the next outer axis. At each level, a rank sends one message to every other rank
 * along the axis, `Σ (g − 1)` messages in total instead of `∏ g − 1`. The slowest link transmits the same bytes as with
 * `raggedDispatcher`, in fewer and larger messages.
 *
 * The dense dispatcher needs no such variant, because the communicator splits its all-to-all into two levels if two
 * levels are faster.
 *
 * Cost with two axes: `4·(D + 1)` bytes per row and level in dispatch and `4·D` in combine, for each axis along which
 * sender and expert's rank have different indices; per chunk `4·E·(P − 1)` bytes of counts sent per rank, and
 * `12·(g − 1)` for each axis.
 * @throws ArgumentError if an option is invalid, or the product of the axes is not the experts' axis.
 * @example
 * ```ts
 * const moe = moeLayer({
 *   gate: switchGate({ width: 4, numExperts: 8, numChoices: 2 }),
 *   experts: geluExperts({ width: 4, hidden: 8 }),
 *   dispatcher: hierarchicalDispatcher({ axes: ["hosts", "inside"] }), // in a mesh { expert: 8, hosts: 2, inside: 4 }
 * });
 * console.log(moe.needsWhole); // false
 * ```
 * Source: Hwang et al. 2023 (Tutel), arXiv 2206.03382, two-dimensional hierarchical all-to-all; generalized to any
 * number of levels and to varying numbers of rows.
 */
export const hierarchicalDispatcher = (options: LevelOptions): TokenDispatcher<LevelMetadata> =>
  levelDispatcher(
    {
      name: "hierarchicalDispatcher",
      pack: ({ x_TD, order: { weights_TK } }, targets_TK) => ({
        x_XD: x_TD,
        targets_NK: reshape(targets_TK, [-1, 1]),
        weights_N: reshape(weights_TK, [-1]),
      }),
      unpack: (x_ND) => ({ x_ND }),
      orderLevels: (levels) => levels.toReversed(),
      targetsPerCopy: () => 1,
      maxCopies: maxEntries,
    },
    options,
  );

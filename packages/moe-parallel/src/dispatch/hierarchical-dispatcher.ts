import { reshape } from "@skein/tensor-core";
import { levelDispatcher, type LevelMetadata } from "./level-dispatcher.ts";
import type { LevelOptions } from "./levels.ts";
import { mostEntries } from "./room.ts";
import type { TokenDispatcher } from "./token-dispatcher.ts";

/**
 * Rows that hold a token travel over levels, one for each token and choice: first along the innermost axis, to the rank
 * that has the place of their expert's in its own group; then, together with those of all ranks of that group, along
 * the next one out. So a rank sends one message to each of g peers of a level, `Σ (g − 1)` of them instead of
 * `∏ g − 1`, and what crosses the slowest link is as much as in `raggedDispatcher`, in messages that are as many times
 * larger.
 *
 * The dense dispatcher has no need of it: the communicator does its all-to-all in two levels where that takes less.
 *
 * Cost: for a mesh of two axes `4·(D + 1)` bytes per row and leg there and `4·D` back, where a row makes a leg for each
 * axis along which its expert's rank lies elsewhere; of each chunk `4·E·(P − 1)` bytes of counts sent per rank, and
 * `12·(g − 1)` for each axis.
 * @throws ArgumentError for options that are wrong by themselves, and where the axes do not make up that of experts.
 * @example hierarchicalDispatcher({ axes: ["hosts", "inside"] }) // in a mesh { expert: 8, hosts: 2, inside: 4 }
 * Source: Hwang et al. 2023 (Tutel), arXiv 2206.03382, two-dimensional hierarchical all-to-all; here for any number of
 * levels, and for as many rows as there are.
 */
export const hierarchicalDispatcher = (options: LevelOptions): TokenDispatcher<LevelMetadata> =>
  levelDispatcher(
    {
      name: "hierarchicalDispatcher",
      begin: ({ x_TD, order: { weights_TK } }, targets_TK) => ({
        x_XD: x_TD,
        targets_NK: reshape(targets_TK, [-1, 1]),
        weights_N: reshape(weights_TK, [-1]),
      }),
      arrive: (x_ND) => ({ x_ND }),
      inOrder: (levels) => levels.toReversed(),
      targetsPerCopy: () => 1,
      mostCopies: mostEntries,
    },
    options,
  );

import { concat, slice } from "@skein/tensor-core";
import { levelDispatcher, type LevelMetadata } from "./level-dispatcher.ts";
import type { LevelOptions } from "./levels.ts";
import { mostTokens } from "./room.ts";
import type { TokenDispatcher } from "./token-dispatcher.ts";

/**
 * A token travels once to each group of ranks that has any of its experts, and not once for each of them: along the
 * outermost axis to the rank of its own place in that group, from there along the next axis to those groups inside that
 * need it, and so on; over one axis, once to each rank. Rows of experts are made where they are. On the way back, what
 * the experts of a rank give for a token is weighted and added up there, then by each relay what its ranks gave, before
 * it crosses the slower link.
 *
 * The weights of its choices travel with a token, so that their gradients come back the way of its own.
 *
 * Cost: for K choices `4·(D + 2·K)` bytes per copy that leaves a rank there, `4·D` back and `4·(D + K)` in backward; of
 * each chunk `4·E·(P − 1)` bytes of counts sent per rank, and `12·(g − 1)` for each axis of g ranks. There are as many
 * copies as a token has groups with experts of its choice at each level, so never more over the outermost axis than
 * rows in `raggedDispatcher`; over all axes together there may be. Relays have room for as many copies as there can be.
 * @throws ArgumentError for options that are wrong by themselves, and where the axes do not make up that of experts.
 * @example duplicateFreeDispatcher({ axes: ["hosts", "inside"] }) // in a mesh { expert: 8, hosts: 2, inside: 4 }
 * Source: Lin et al. 2025 (HierMoE), arXiv 2508.09591.
 */
export const duplicateFreeDispatcher = (options: LevelOptions): TokenDispatcher<LevelMetadata> =>
  levelDispatcher(
    {
      name: "duplicateFreeDispatcher",
      begin: ({ x_TD, order }, targets_TK) => ({
        x_XD: concat([x_TD, order.weights_TK], { dim: 1 }),
        targets_NK: targets_TK,
      }),
      arrive: (x_ND, width) => ({
        x_ND: slice(x_ND, [0, 0], [x_ND.shape[0]!, width]),
        weights_NK: slice(x_ND, [0, width], [...x_ND.shape]),
      }),
      inOrder: (levels) => levels,
      targetsPerCopy: ({ numChoices }) => numChoices,
      mostCopies: mostTokens,
    },
    options,
  );

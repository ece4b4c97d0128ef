import { ArgumentError } from "@skein/tensor-core";
import type { Routing } from "../routing/routing.ts";
import { checkExchangeInputs, groupsOfExperts, messageCounts } from "./exchange-counts.ts";
import { type ExchangeLevels, exchangesOf } from "./exchange-levels.ts";
import type { ExpertPlacement } from "./expert-placement.ts";
import { smoothMaximum } from "./smooth-maximum.ts";

export interface ExchangeSecondsOptions {
  /** Bytes per token: model width times bytes per number. */
  readonly bytesPerToken: number;
  /**
   * Exponent γ of the smooth maximum over messages. Default: ∞, the exact maximum, which describes the actual exchange.
   */
  readonly gamma?: number;
  /**
   * Whether all senders are assumed to send the same number of tokens to a group, as in the paper. If false, tokens are
   * counted per sender. Default: false.
   */
  readonly hasEqualSenders?: boolean;
}

/** Throws ArgumentError if tokens have no bytes, or γ is below 1. */
export const checkExchangeOptions = (
  planner: string,
  { bytesPerToken, gamma }: Required<Pick<ExchangeSecondsOptions, "bytesPerToken" | "gamma">>,
): void => {
  if (!(bytesPerToken > 0 && Number.isFinite(bytesPerToken)))
    throw new ArgumentError(`${planner}: bytesPerToken is ${bytesPerToken}; use a finite number above 0`);
  if (!(gamma >= 1)) throw new ArgumentError(`${planner}: gamma is ${gamma}; use 1 or more`);
};

/**
 * Predicts the time to dispatch a step's tokens over d = 1 to D levels. A token is sent once to each group that needs
 * the token, and copied within the group:
 *
 *     t(1) = α + β · G · max p · B
 *     t(d) = Σ (i < d) [α(i) + β(i) · U(i) / U(i − 1) · max p(i) · B] + α' + β' · G / U(d − 1) · max p' · B
 *
 * Symbols: G ranks; U(i) groups at level i, U(0) = 1; B bytes per token; p tokens per message, from `messageCounts`. α
 * and β are the costs of the flat exchange, α(i) and β(i) the costs between the groups of level i, and α' and β' the
 * costs within the groups of the last level. Combining takes the same time. The formulas assume that all messages are
 * as long as the longest message, including a rank's message to itself.
 *
 * Cost: O(D² · T · K).
 *
 * @param routing routing of all ranks' tokens, in rank order, with equal numbers per rank: see `joinRoutings`.
 * @returns t(1) … t(D), in seconds.
 * @throws ArgumentError if the placement has replicas, inputs do not match, or an option is invalid.
 * @example
 * ```ts
 * const routing = { numExperts: 4, numChoices: 1, choices: Int32Array.of(0, 1, 2, 3) };
 * const line = { startupSeconds: 0, secondsPerByte: 1e-3 };
 * const levels = { numRanks: 2, flat: line, levels: [] };
 * console.log(exchangeSeconds(routing, placeInOrder(4, 2), levels, { bytesPerToken: 1000 })); // [4]
 * ```
 * Source: Lin et al. 2025 (HierMoE), arXiv 2508.09591.
 */
export const exchangeSeconds = (
  routing: Routing,
  placement: ExpertPlacement,
  levels: ExchangeLevels,
  { bytesPerToken, gamma = Infinity, hasEqualSenders = false }: ExchangeSecondsOptions,
): readonly number[] => {
  checkExchangeInputs("exchangeSeconds", routing, placement, levels);
  checkExchangeOptions("exchangeSeconds", { bytesPerToken, gamma });
  return Array.from({ length: levels.levels.length + 1 }, (_, i) =>
    exchangesOf(levels, i + 1).reduce((seconds, exchange) => {
      const { line, numGroups, numPeers, parentGroupSize } = exchange;
      const numSenders = hasEqualSenders ? parentGroupSize : 1;
      const counts = messageCounts(
        routing,
        groupsOfExperts(placement, numGroups),
        { numGroups, parentGroupSize: parentGroupSize / numSenders },
        levels.numRanks,
      );
      const bytes = ((numPeers * smoothMaximum(counts, gamma)) / numSenders) * bytesPerToken;
      return seconds + line.startupSeconds + line.secondsPerByte * bytes;
    }, 0),
  );
};

import { ArgumentError } from "@skein/tensor-core";
import { type CollectiveModel, collectiveSeconds } from "../../collective-model.ts";
import { allCopies, distinctCopies, type ExpertRouting } from "./routing.ts";

/**
 * One level of a hierarchy of links, such as hosts, sockets or pairs of devices. Levels are ordered from the outermost
 * to the innermost.
 */
export interface HierarchyLevel {
  /** U, number of groups of ranks in the whole world; a multiple of the previous level's number of groups. */
  readonly numGroups: number;
  /** Time model of the all-to-all between those groups of this level that belong to one group of the previous level. */
  readonly between: CollectiveModel;
  /** Time model of the all-to-all among all ranks of one group of this level, over any links. */
  readonly within: CollectiveModel;
}

/**
 * Links between the ranks that exchange tokens, as time models of measured all-to-alls. Each model is a function of the
 * bytes that a rank sends.
 */
export interface Hierarchy {
  /** G, number of ranks. */
  readonly numRanks: number;
  /** Time model of an all-to-all among all ranks in one step. */
  readonly flat: CollectiveModel;
  readonly levels: readonly HierarchyLevel[];
}

export interface HierarchicalOptions {
  /** M · v, bytes of the row of one token. */
  readonly bytesPerToken: number;
  /** Number of ranks whose tokens the routing contains: 1, or all. Default: 1. */
  readonly numSources?: number | undefined;
  /**
   * Function that aggregates the token counts of the groups. Default: the maximum. `smoothMaximum` is better for
   * comparing plans that differ little.
   */
  readonly maximum?: ((copies: Int32Array) => number) | undefined;
}

/** Chosen number of steps of an all-to-all, with the predicted time of each choice. */
export interface HierarchicalPlan {
  /**
   * d*, number of steps of the fastest all-to-all. 1: flat. d > 1: one all-to-all between the groups of each of the
   * outer d − 1 levels, then one within the groups of level d − 1.
   */
  readonly depth: number;
  readonly seconds: number;
  /** t_1 … t_D: predicted seconds of the all-to-all in 1 … D steps. */
  readonly secondsByDepth: readonly number[];
}

const largestOf = (copies: Int32Array): number => copies.reduce((most, count) => Math.max(most, count), 0);

const checkHierarchy = ({ numRanks, levels }: Hierarchy): void => {
  let before = 1;
  for (const [i, { numGroups }] of levels.entries()) {
    if (!(Number.isSafeInteger(numGroups) && numGroups > before && numGroups % before === 0))
      throw new ArgumentError(
        `level ${i} of a hierarchy has ${numGroups} groups inside ${before}, but must divide each of these into equally many, 2 or more; use a larger multiple of ${before}`,
      );
    before = numGroups;
  }
  if (!(Number.isSafeInteger(numRanks) && numRanks >= before && numRanks % before === 0))
    throw new ArgumentError(
      `a hierarchy has ${numRanks} ranks in ${before} groups, but groups must have equally many ranks, 1 or more; use a multiple of ${before}`,
    );
};

/** Returns the bytes that a rank receives in the busiest of g groups, if the ranks of a group receive equal parts. */
const busiestBytes = (copies: Int32Array, options: HierarchicalOptions): number => {
  const { bytesPerToken, numSources = 1, maximum = largestOf } = options;
  if (!(bytesPerToken >= 0 && Number.isFinite(bytesPerToken) && Number.isSafeInteger(numSources) && numSources >= 1))
    throw new ArgumentError(
      `bytesPerToken is ${bytesPerToken} and numSources is ${numSources}, but the first must be finite and 0 or more, the second a whole number from 1; correct them`,
    );
  return (copies.length * maximum(copies) * bytesPerToken) / numSources;
};

/**
 * Compute the seconds of the plain all-to-all, in which a token is sent to a rank one time for each expert of the token
 * on this rank.
 *
 * @throws ArgumentError under the conditions of `planHierarchicalAllToAll`.
 * @example
 * ```ts
 * const routing = uniformRouting(256, { numExperts: 8, expertsPerToken: 2 }, [0, 1]);
 * const hierarchy = { numRanks: 4, flat: { startupSeconds: 1e-5, secondsPerByte: 1e-8 }, levels: [] };
 * console.log(plainAllToAllSeconds(routing, hierarchy, { bytesPerToken: 2048 }) > 1e-5); // true
 * ```
 */
export const plainAllToAllSeconds = (
  routing: ExpertRouting,
  hierarchy: Hierarchy,
  options: HierarchicalOptions,
): number => {
  checkHierarchy(hierarchy);
  return collectiveSeconds(hierarchy.flat, busiestBytes(allCopies(routing, hierarchy.numRanks), options));
};

/**
 * Choose the number of steps of an all-to-all of tokens. Each step sends a token to a group only once, even if several
 * experts of the token are in the group. With U(i) groups at level i, p(g) the tokens of each of g groups and G ranks:
 *
 *     n(g) = g · max p(g) · M · v,   t_1 = flat(n(G)),   t_d = Σ over i < d of between_i(n(U(i))) + within_{d−1}(n(G))
 *
 * Assumes that all ranks send the same number of bytes, and that the ranks of a group receive equal parts. Under these
 * assumptions n equals the published number of bytes of a step, which is counted over the tokens present at the step:
 * after level i, a rank has the tokens that U(i) ranks had for its group.
 *
 * Cost: O(D · tokens · K).
 *
 * @param routing Routing of the tokens of one rank, or of all ranks.
 * @param options `numSources` is the number of ranks whose tokens `routing` contains.
 * @throws ArgumentError for groups that do not divide one another, the ranks or the experts, or impossible values.
 *
 * @example
 * ```ts
 * const routing = uniformRouting(256, { numExperts: 8, expertsPerToken: 2 }, [0, 1]);
 * const [slow, fast] = [1e-8, 1e-9].map((secondsPerByte) => ({ startupSeconds: 1e-5, secondsPerByte }));
 * const hierarchy = { numRanks: 4, flat: slow!, levels: [{ numGroups: 2, between: slow!, within: fast! }] };
 * console.log(planHierarchicalAllToAll(routing, hierarchy, { bytesPerToken: 2048 }).depth); // 2
 * ```
 * Source: arXiv 2508.09591 (HierMoE).
 */
export const planHierarchicalAllToAll = (
  routing: ExpertRouting,
  hierarchy: Hierarchy,
  options: HierarchicalOptions,
): HierarchicalPlan => {
  checkHierarchy(hierarchy);
  const { numRanks, flat, levels } = hierarchy;
  const bytesOf = (numGroups: number): number => busiestBytes(distinctCopies(routing, numGroups), options);
  const bytesOfRanks = bytesOf(numRanks);
  const secondsByDepth = [collectiveSeconds(flat, bytesOfRanks)];
  let betweenSeconds = 0;
  for (const { numGroups, between, within } of levels) {
    betweenSeconds += collectiveSeconds(between, bytesOf(numGroups));
    secondsByDepth.push(betweenSeconds + collectiveSeconds(within, bytesOfRanks));
  }
  const seconds = Math.min(...secondsByDepth);
  return { depth: secondsByDepth.indexOf(seconds) + 1, seconds, secondsByDepth };
};

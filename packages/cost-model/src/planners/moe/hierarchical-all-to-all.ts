import { ArgumentError } from "@skein/tensor-core";
import { type CollectiveModel, collectiveSeconds } from "../../collective-model.ts";
import { allCopies, distinctCopies, type Routing } from "./routing.ts";

/** One level of links, ordered from the outermost inwards: hosts, sockets, pairs of devices. */
export interface HierarchyLevel {
  /** U, number of groups of ranks in the whole world; a multiple of that of the previous level. */
  readonly numGroups: number;
  /** All-to-all between the groups of this level that share a group of the previous level. */
  readonly between: CollectiveModel;
  /** All-to-all of all ranks of one group of this level, over any links. */
  readonly within: CollectiveModel;
}

/** Links of ranks that exchange tokens, as measured all-to-alls. The models take the bytes that a rank sends. */
export interface Hierarchy {
  /** G, number of ranks. */
  readonly numRanks: number;
  /** All-to-all of all ranks at once. */
  readonly flat: CollectiveModel;
  readonly levels: readonly HierarchyLevel[];
}

export interface HierarchicalOptions {
  /** M · v: bytes of a token's row. */
  readonly bytesPerToken: number;
  /** Number of ranks whose tokens the routing contains: 1, or all. Default: 1. */
  readonly numSources?: number | undefined;
  /** Aggregates the tokens by group. Default: the maximum; use `smoothMaximum` to compare plans that differ little. */
  readonly maximum?: ((copies: Int32Array) => number) | undefined;
}

/** Chosen number of steps of an all-to-all, with the predicted time of each choice. */
export interface HierarchicalPlan {
  /** d*: 1 is the flat all-to-all; d has d steps, between groups of d − 1 levels, then within the last level. */
  readonly depth: number;
  readonly seconds: number;
  /** t_1 … t_D, depth 1 first. */
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

/** Bytes that a rank receives in the busiest of g groups, if the ranks of a group receive equal parts. */
const busiestBytes = (copies: Int32Array, options: HierarchicalOptions): number => {
  const { bytesPerToken, numSources = 1, maximum = largestOf } = options;
  if (!(bytesPerToken >= 0 && Number.isFinite(bytesPerToken) && Number.isSafeInteger(numSources) && numSources >= 1))
    throw new ArgumentError(
      `bytesPerToken is ${bytesPerToken} and numSources is ${numSources}, but the first must be finite and 0 or more, the second a whole number from 1; correct them`,
    );
  return (copies.length * maximum(copies) * bytesPerToken) / numSources;
};

/**
 * Seconds of the plain all-to-all, in which a token is sent to a rank once for each of its experts there.
 *
 * @throws ArgumentError see `planHierarchicalAllToAll`.
 */
export const plainAllToAllSeconds = (routing: Routing, hierarchy: Hierarchy, options: HierarchicalOptions): number => {
  checkHierarchy(hierarchy);
  return collectiveSeconds(hierarchy.flat, busiestBytes(allCopies(routing, hierarchy.numRanks), options));
};

/**
 * Choose the number of steps of an all-to-all of tokens. Each step sends a token to a group once, even if several of
 * its experts are there. With U(i) groups at level i, p(g) the tokens of each of g groups and G ranks:
 *
 *     n(g) = g · max p(g) · M · v,   t_1 = flat(n(G)),   t_d = Σ over i < d of between_i(n(U(i))) + within_{d−1}(n(G))
 *
 * Assumes that all ranks send equally much, and that the ranks of a group receive equal parts. Then the published bytes
 * of a step, which are counted over the tokens present, are these n: after level i a rank holds the tokens that U(i)
 * ranks had for its group.
 *
 * Cost: O(D · tokens · K).
 *
 * @param routing of the tokens of one rank, or of all ranks. @param options `numSources` is this number of ranks.
 * @throws ArgumentError for groups that do not divide one another, the ranks or the experts, or impossible values.
 *
 * Source: arXiv 2508.09591 (HierMoE).
 */
export const planHierarchicalAllToAll = (
  routing: Routing,
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

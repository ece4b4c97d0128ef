import { ArgumentError } from "@skein/tensor-core";
import { type CollectiveModel, collectiveSeconds } from "../../collective-model.ts";
import { allCopies, distinctCopies, type Routing } from "./routing.ts";

/** One level of links, from the outermost inwards: hosts, then sockets, then pairs of devices. */
export interface HierarchyLevel {
  /** U, groups of ranks in the whole world; a multiple of that of the level before. */
  readonly numGroups: number;
  /** An all-to-all between the groups of this level that are in one group of the level before. */
  readonly between: CollectiveModel;
  /** An all-to-all of all ranks of one group of this level, over whatever links. */
  readonly within: CollectiveModel;
}

/** The links of a group that exchanges tokens, by measured all-to-alls; models take the bytes that a rank sends. */
export interface Hierarchy {
  /** G. */
  readonly numRanks: number;
  /** An all-to-all of all ranks at once. */
  readonly flat: CollectiveModel;
  readonly levels: readonly HierarchyLevel[];
}

export interface HierarchicalOptions {
  /** M · v: of a token's row. */
  readonly bytesPerToken: number;
  /** How many ranks' tokens the routing holds: 1, or all. Default: 1. */
  readonly numSources?: number | undefined;
  /** Of the tokens by group. Default: the plain maximum; `smoothMaximum` to compare plans that differ little. */
  readonly maximum?: ((copies: Int32Array) => number) | undefined;
}

/** In how many levels an all-to-all goes, and what each choice would take. */
export interface HierarchicalPlan {
  /** d*: 1 is the flat all-to-all, d the one in d steps: between groups of d − 1 levels, then within the last. */
  readonly depth: number;
  readonly seconds: number;
  /** t_1 … t_D, the depth 1 first. */
  readonly secondsByDepth: readonly number[];
}

const largestOf = (copies: Int32Array): number => copies.reduce((most, count) => Math.max(most, count), 0);

const checkHierarchy = ({ numRanks, levels }: Hierarchy): void => {
  let before = 1;
  for (const [i, { numGroups }] of levels.entries()) {
    if (!(Number.isSafeInteger(numGroups) && numGroups > before && numGroups % before === 0))
      throw new ArgumentError(
        `level ${i} of a hierarchy has ${numGroups} groups inside ${before}; each is cut into the same number, 2 or more`,
      );
    before = numGroups;
  }
  if (!(Number.isSafeInteger(numRanks) && numRanks >= before && numRanks % before === 0))
    throw new ArgumentError(
      `a hierarchy has ${numRanks} ranks in ${before} groups; groups hold the same number of ranks, one or more`,
    );
};

/** Bytes that a rank receives of what goes to the group of g that gets most; its ranks take equal parts. */
const busiestBytes = (copies: Int32Array, options: HierarchicalOptions): number => {
  const { bytesPerToken, numSources = 1, maximum = largestOf } = options;
  if (!(bytesPerToken >= 0 && Number.isFinite(bytesPerToken) && Number.isSafeInteger(numSources) && numSources >= 1))
    throw new ArgumentError(
      `tokens have ${bytesPerToken} bytes and come from ${numSources} ranks; use bytes from 0 and a whole number from 1`,
    );
  return (copies.length * maximum(copies) * bytesPerToken) / numSources;
};

/**
 * Price the plain all-to-all: every rank sends a token to a rank as often as it has experts there.
 *
 * @throws ArgumentError as `planHierarchicalAllToAll`.
 */
export const plainAllToAllSeconds = (routing: Routing, hierarchy: Hierarchy, options: HierarchicalOptions): number => {
  checkHierarchy(hierarchy);
  return collectiveSeconds(hierarchy.flat, busiestBytes(allCopies(routing, hierarchy.numRanks), options));
};

/**
 * Choose in how many steps an all-to-all of tokens runs, where each step sends a token to a group once, however many of
 * its experts are there. With U(i) groups at level i, p(g) the tokens of each of g groups and G ranks:
 *
 *     n(g) = g · max p(g) · M · v,   t_1 = flat(n(G)),   t_d = Σ over i < d of between_i(n(U(i))) + within_{d−1}(n(G))
 *
 * It assumes that ranks send alike and that a group's ranks take equal parts of what it gets. Then the published bytes
 * of a step, which are counted over what is present there, are those n: after level i a rank holds what U(i) ranks had
 * for its group.
 *
 * Cost: O(D · tokens · K).
 *
 * @param routing of the tokens of one rank, or of all. @param options `numSources` says of how many.
 * @throws ArgumentError for groups that do not divide one another, the ranks or the experts, or impossible figures.
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

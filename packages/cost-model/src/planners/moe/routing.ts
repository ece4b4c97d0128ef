import { ArgumentError } from "@skein/tensor-core";
import { threefryWord } from "@skein/tensor-core/backend";

/**
 * Which experts each token goes to; plain data. Experts stand in the order of the ranks that hold them, so g equal
 * groups of neighbours are the ranks of g hosts, sockets or devices. Where experts have moved, their places stand here.
 */
export interface Routing {
  /** `[tokens · expertsPerToken]`: those of token 0, all different, then those of token 1 … */
  readonly experts: Int32Array;
  /** K. */
  readonly expertsPerToken: number;
  /** E. */
  readonly numExperts: number;
}

/** How many experts each of g groups holds. @throws ArgumentError unless groups are of equal size. */
const expertsPerGroup = (numExperts: number, numGroups: number): number => {
  if (!(Number.isSafeInteger(numGroups) && numGroups >= 1 && numExperts % numGroups === 0))
    throw new ArgumentError(
      `${numExperts} experts are counted in ${numGroups} groups; use a number of groups that divides the experts`,
    );
  return numExperts / numGroups;
};

/** @throws ArgumentError for a number of experts that a token cannot have, or a token that has not all its experts. */
const checkRouting = ({ experts, expertsPerToken, numExperts }: Routing): void => {
  if (
    !(Number.isSafeInteger(expertsPerToken) && expertsPerToken >= 1 && expertsPerToken <= numExperts) ||
    !Number.isSafeInteger(numExperts)
  )
    throw new ArgumentError(
      `a routing has ${expertsPerToken} of ${numExperts} experts for each token; use whole numbers, 1 up to all experts`,
    );
  if (experts.length % expertsPerToken !== 0)
    throw new ArgumentError(
      `a routing names ${experts.length} experts for tokens of ${expertsPerToken} each; give each token its number`,
    );
};

/**
 * Count the tokens of each group: p[j], tokens with at least one expert in group j. That is what travels when a token
 * goes to a group once, however many of its experts are there.
 *
 * Cost: O(tokens · K).
 *
 * @returns i32 [numGroups].
 * @throws ArgumentError for groups that do not divide the experts, or an expert that is none.
 *
 * Source: arXiv 2508.09591 (HierMoE).
 */
export const distinctCopies = (routing: Routing, numGroups: number): Int32Array => {
  checkRouting(routing);
  const { experts, expertsPerToken, numExperts } = routing;
  const size = expertsPerGroup(numExperts, numGroups);
  const copies = new Int32Array(numGroups);
  // The last token that was counted for a group: no need to clear a mask for each token.
  const lastToken = new Int32Array(numGroups).fill(-1);
  for (const [i, expert] of experts.entries()) {
    if (!(expert >= 0 && expert < numExperts))
      throw new ArgumentError(`a routing names expert ${expert}; there are experts 0 to ${numExperts - 1}`);
    const [group, token] = [Math.floor(expert / size), Math.floor(i / expertsPerToken)];
    if (lastToken[group] === token) continue;
    lastToken[group] = token;
    copies[group]!++;
  }
  return copies;
};

/**
 * Count choices by group, a token as often as it has experts there. That is what travels without a look for duplicates.
 *
 * Cost: O(tokens · K).
 *
 * @returns i32 [numGroups].
 * @throws ArgumentError as `distinctCopies`.
 */
export const allCopies = (routing: Routing, numGroups: number): Int32Array => {
  checkRouting(routing);
  // Every choice as a token of its own.
  return distinctCopies({ ...routing, expertsPerToken: 1 }, numGroups);
};

/**
 * Route tokens evenly: each to K different experts, all sets equally likely up to a bias of E / 2³². A stand-in where
 * no routing was measured.
 *
 * Cost: O(tokens · K).
 *
 * @param key two words, such as `randomKey(seed).data`; the same key gives the same routing.
 *
 * Source: Floyd's sampling without replacement (Bentley and Floyd 1987).
 */
export const uniformRouting = (
  numTokens: number,
  { numExperts, expertsPerToken }: Omit<Routing, "experts">,
  key: ArrayLike<number>,
): Routing => {
  const routing = { experts: new Int32Array(numTokens * expertsPerToken), expertsPerToken, numExperts };
  checkRouting(routing);
  const { experts } = routing;
  for (let token = 0; token < numTokens; token++) {
    const first = token * expertsPerToken;
    for (let i = 0; i < expertsPerToken; i++) {
      const last = numExperts - expertsPerToken + i;
      const drawn = Math.floor((threefryWord(key, first + i) * (last + 1)) / 2 ** 32);
      experts[first + i] = experts.subarray(first, first + i).includes(drawn) ? last : drawn;
    }
  }
  return routing;
};

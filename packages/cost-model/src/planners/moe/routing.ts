import { ArgumentError } from "@skein/tensor-core";
import { threefryWord } from "@skein/tensor-core/backend";

/**
 * Experts of each token; plain data. Experts are ordered by the ranks that hold them, so g equal groups of consecutive
 * experts belong to the ranks of g hosts, sockets or devices. If experts were moved between ranks, the indices are the
 * experts' positions after the move.
 */
export interface ExpertRouting {
  /**
   * Indices of the experts, shape `[tokens · expertsPerToken]`: first the experts of token 0, all different, then the
   * experts of token 1, …
   */
  readonly experts: Int32Array;
  /** K, number of experts per token. */
  readonly expertsPerToken: number;
  /** E, number of experts. */
  readonly numExperts: number;
}

/**
 * Returns the number of experts in each of g groups.
 * @throws ArgumentError unless groups have equal size.
 */
const expertsPerGroup = (numExperts: number, numGroups: number): number => {
  if (!(Number.isSafeInteger(numGroups) && numGroups >= 1 && numExperts % numGroups === 0))
    throw new ArgumentError(
      `${numExperts} experts are not divisible into ${numGroups} groups; use a number of groups that divides the experts`,
    );
  return numExperts / numGroups;
};

/**
 * Check the values of a routing.
 * @throws ArgumentError for an impossible number of experts per token, or an incomplete token.
 */
const checkRouting = ({ experts, expertsPerToken, numExperts }: ExpertRouting): void => {
  if (
    !(Number.isSafeInteger(expertsPerToken) && expertsPerToken >= 1 && expertsPerToken <= numExperts) ||
    !Number.isSafeInteger(numExperts)
  )
    throw new ArgumentError(
      `a routing has ${expertsPerToken} of ${numExperts} experts per token, but needs whole numbers, from 1 to all experts; correct expertsPerToken`,
    );
  if (experts.length % expertsPerToken !== 0)
    throw new ArgumentError(
      `a routing has ${experts.length} entries, which is not a multiple of ${expertsPerToken} experts per token; give each token ${expertsPerToken} experts`,
    );
};

/**
 * Count the tokens of each group: p[j], the tokens with at least one expert in group j. This is the traffic if each
 * token is sent to a group only once, even if the group contains several of its experts.
 *
 * Cost: O(tokens · K).
 *
 * @returns i32 [numGroups].
 * @throws ArgumentError for groups that do not divide the experts, or an invalid expert.
 *
 * @example
 * ```ts
 * const routing = { experts: Int32Array.of(0, 1, 0, 2), expertsPerToken: 2, numExperts: 4 };
 * console.log([...distinctCopies(routing, 2)]); // [2, 1]
 * ```
 * Source: arXiv 2508.09591 (HierMoE).
 */
export const distinctCopies = (routing: ExpertRouting, numGroups: number): Int32Array => {
  checkRouting(routing);
  const { experts, expertsPerToken, numExperts } = routing;
  const size = expertsPerGroup(numExperts, numGroups);
  const copies = new Int32Array(numGroups);
  // Last token that was counted for each group; an array of flags would have to be cleared for each token.
  const lastToken = new Int32Array(numGroups).fill(-1);
  for (const [i, expert] of experts.entries()) {
    if (!(expert >= 0 && expert < numExperts))
      throw new ArgumentError(
        `a routing contains expert ${expert}, but experts are 0 to ${numExperts - 1}; correct the routing`,
      );
    const [group, token] = [Math.floor(expert / size), Math.floor(i / expertsPerToken)];
    if (lastToken[group] === token) continue;
    lastToken[group] = token;
    copies[group]!++;
  }
  return copies;
};

/**
 * Count the choices of each group: a token is counted one time for each of its experts in the group. This is the
 * traffic without removing duplicates.
 *
 * Cost: O(tokens · K).
 *
 * @returns i32 [numGroups].
 * @throws ArgumentError under the conditions of `distinctCopies`.
 */
export const allCopies = (routing: ExpertRouting, numGroups: number): Int32Array => {
  checkRouting(routing);
  // Treats every choice as a separate token.
  return distinctCopies({ ...routing, expertsPerToken: 1 }, numGroups);
};

/**
 * Route tokens evenly: each token to K different experts, all sets equally likely up to a bias of E / 2³². Used when no
 * routing was measured.
 *
 * Cost: O(tokens · K).
 *
 * @param key Random key of two words, such as `randomKey(seed).data`; the same key gives the same routing.
 *
 * @example
 * ```ts
 * const { experts } = uniformRouting(4, { numExperts: 8, expertsPerToken: 2 }, [0, 1]);
 * console.log(experts.length); // 8
 * ```
 * Source: Floyd's sampling without replacement (Bentley and Floyd 1987).
 */
export const uniformRouting = (
  numTokens: number,
  { numExperts, expertsPerToken }: Omit<ExpertRouting, "experts">,
  key: ArrayLike<number>,
): ExpertRouting => {
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

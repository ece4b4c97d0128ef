import type { Routing } from "@skein/moe-parallel/routing";
import { threefryWord } from "@skein/tensor-core/backend";

/**
 * Routes each token to K different experts, with all sets of experts equally likely up to a bias of E / 2³². Takes
 * O(tokens · K) time.
 *
 * @param key Random key of two words, such as `randomKey(seed).data`; the same key gives the same routing.
 *
 * Source: Floyd's sampling without replacement (Bentley and Floyd 1987).
 */
export const uniformRouting = (
  numTokens: number,
  { numExperts, numChoices }: Omit<Routing, "choices">,
  key: ArrayLike<number>,
): Routing => {
  const choices = new Int32Array(numTokens * numChoices);
  for (let token = 0; token < numTokens; token++) {
    const first = token * numChoices;
    for (let i = 0; i < numChoices; i++) {
      const last = numExperts - numChoices + i;
      const drawn = Math.floor((threefryWord(key, first + i) * (last + 1)) / 2 ** 32);
      choices[first + i] = choices.subarray(first, first + i).includes(drawn) ? last : drawn;
    }
  }
  return { numExperts, numChoices, choices };
};

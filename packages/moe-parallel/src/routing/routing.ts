import { ArgumentError } from "@skein/tensor-core";

/** Expert choices of T tokens, with K choices per token. */
export interface Routing {
  /** E, number of logical experts; choices are from 0 to E − 1. */
  readonly numExperts: number;
  /** K, number of choices per token. */
  readonly numChoices: number;
  /** Choices, token by token, i32[T · K]; −1 for a dropped choice. */
  readonly choices: Int32Array;
}

/** Returns T, the number of tokens. */
export const numTokens = ({ choices, numChoices }: Routing): number => choices.length / numChoices;

/**
 * Checks that every choice is an existing expert, and that no token chose an expert twice.
 *
 * Cost: O(T · K²).
 * @throws ArgumentError whose message contains the token.
 */
export const checkRouting = ({ numExperts, numChoices, choices }: Routing): void => {
  if (!Number.isInteger(numExperts) || numExperts < 1 || !Number.isInteger(numChoices) || numChoices < 1)
    throw new ArgumentError(
      `routing: ${numExperts} experts with ${numChoices} choices per token; both must be whole numbers from 1`,
    );
  if (choices.length % numChoices !== 0)
    throw new ArgumentError(
      `routing: ${choices.length} choices are not divisible by ${numChoices} choices per token; pad with −1`,
    );
  for (let i = 0; i < choices.length; i++) {
    const expert = choices[i]!;
    if (expert === -1) continue;
    const token = Math.floor(i / numChoices);
    if (expert < 0 || expert >= numExperts)
      throw new ArgumentError(
        `routing: token ${token} chose expert ${expert} of ${numExperts}; experts are numbered from 0, and −1 is no choice`,
      );
    if (choices.indexOf(expert, token * numChoices) < i)
      throw new ArgumentError(
        `routing: token ${token} chose expert ${expert} twice; the choices of a token must differ, replace one by −1`,
      );
  }
};

/**
 * Counts the tokens that chose each expert. A token counts once per choice.
 *
 * @returns E counts.
 * @example
 * ```ts
 * console.log(expertCounts({ numExperts: 3, numChoices: 1, choices: Int32Array.of(0, 0, 2) })); // [2, 0, 1]
 * ```
 */
export const expertCounts = ({ numExperts, choices }: Routing): number[] => {
  const counts = Array.from({ length: numExperts }, () => 0);
  for (const expert of choices) if (expert !== -1) counts[expert]! += 1;
  return counts;
};

/**
 * Concatenates the routings of ranks, in rank order: tokens of rank 0 first.
 *
 * @throws ArgumentError if the list is empty, or the routings have different numbers of experts or of choices per
 * token.
 */
export const joinRoutings = (routings: readonly Routing[]): Routing => {
  const [first] = routings;
  if (first === undefined) throw new ArgumentError("joinRoutings: no routings were given; give one per rank");
  const choices = new Int32Array(routings.reduce((sum, { choices }) => sum + choices.length, 0));
  let at = 0;
  for (const [rank, { numExperts, numChoices, choices: own }] of routings.entries()) {
    if (numExperts !== first.numExperts || numChoices !== first.numChoices)
      throw new ArgumentError(
        `joinRoutings: rank ${rank} has ${numExperts} experts and ${numChoices} choices per token, rank 0 has ${first.numExperts} and ${first.numChoices}; join routings of one layer`,
      );
    choices.set(own, at);
    at += own.length;
  }
  return { ...first, choices };
};

/**
 * Makes every choice a separate token with a single choice. Predicts the traffic if a token is sent once per choice,
 * even if one rank has several of its experts.
 */
export const singleChoices = ({ numExperts, choices }: Routing): Routing => ({ numExperts, numChoices: 1, choices });

import { NdArray } from "@skein/tensor-core";
import fc from "fast-check";

/** Choices and weights of a gate, as nested lists. */
export interface GateDecisions {
  readonly numExperts: number;
  readonly numChoices: number;
  /** Choices of each token; −1 for no choice. */
  readonly choices: readonly (readonly number[])[];
  readonly weights: readonly (readonly number[])[];
}

export interface RoutingSizes {
  /** Number of experts. Default: 1 to 6. */
  readonly numExperts?: fc.Arbitrary<number>;
  /** Number of tokens. Default: 1 to 7. */
  readonly numTokens?: fc.Arbitrary<number>;
  /** Whether some entries have no choice. Default: true. */
  readonly holes?: boolean;
}

/**
 * Generates routings that include edge cases: all tokens to one expert, experts without tokens, one token, each token
 * to all experts, missing choices, tied weights and weights of 0.
 */
export const routings = ({
  numExperts = fc.integer({ min: 1, max: 6 }),
  numTokens = fc.integer({ min: 1, max: 7 }),
  holes = true,
}: RoutingSizes = {}): fc.Arbitrary<GateDecisions> =>
  fc.record({ experts: numExperts, tokens: numTokens, same: fc.boolean() }).chain(({ experts, tokens, same }) =>
    fc.constantFrom(1, Math.min(2, experts), experts).chain((numChoices) => {
      const all = Array.from({ length: experts }, (_, expert) => expert);
      const ofToken = fc
        .tuple(fc.shuffledSubarray(all, { minLength: numChoices, maxLength: numChoices }), fc.nat(2 ** numChoices - 1))
        .map(([chosen, mask]) => chosen.map((expert, k) => (holes && (mask >> k) % 4 === 3 ? -1 : expert)));
      const weight = fc.constantFrom(0, 0.125, 0.25, 0.25, 0.5, 1);
      const list = <T>(each: fc.Arbitrary<T>, length: number): fc.Arbitrary<T[]> =>
        fc.array(each, { minLength: length, maxLength: length });
      return fc.record({
        numExperts: fc.constant(experts),
        numChoices: fc.constant(numChoices),
        choices: same ? ofToken.map((own) => Array.from({ length: tokens }, () => own)) : list(ofToken, tokens),
        weights: list(list(weight, numChoices), tokens),
      });
    }),
  );

export const choicesOf = ({ choices, numChoices }: GateDecisions): NdArray =>
  NdArray.from(choices.flat(), [choices.length, numChoices], "i32");

export const weightsOf = ({ weights, numChoices }: GateDecisions): NdArray =>
  NdArray.from(weights.flat(), [weights.length, numChoices], "f32");

/** Returns an array of numbers that differ by index. No number is 0, and sums of a few numbers are exact. */
export const counting = (shape: readonly number[], seed = 0): NdArray =>
  NdArray.from(
    Array.from(
      { length: shape.reduce((product, size) => product * size, 1) },
      (_, i) => 1 + ((i * 7 + seed * 13) % 31),
    ),
    shape,
    "f32",
  );

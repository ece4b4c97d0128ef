import fc from "fast-check";
import type { ExpertRouting } from "../src/planners.ts";

/**
 * Routings of up to 40 tokens to 24 experts (a number with many divisors), where some experts are chosen more often
 * than others.
 */
export const routings: fc.Arbitrary<ExpertRouting> = fc
  .tuple(fc.integer({ min: 1, max: 8 }), fc.nat(40), fc.constantFrom(8, 12, 24))
  .chain(([expertsPerToken, numTokens, numPreferred]) =>
    fc
      .array(
        fc.uniqueArray(fc.oneof(fc.nat(numPreferred - 1), fc.nat(23)), {
          minLength: expertsPerToken,
          maxLength: expertsPerToken,
        }),
        { minLength: numTokens, maxLength: numTokens },
      )
      .map((tokens) => ({ experts: Int32Array.from(tokens.flat()), expertsPerToken, numExperts: 24 })),
  );

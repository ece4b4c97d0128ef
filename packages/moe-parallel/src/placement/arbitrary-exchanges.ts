import fc from "fast-check";
import type { Routing } from "../routing/routing.ts";
import { placementOf } from "./arbitrary-placements.ts";
import type { ExchangeLevels, ExchangeLine } from "./exchange-levels.ts";
import type { ExpertPlacement } from "./expert-placement.ts";

const line: fc.Arbitrary<ExchangeLine> = fc.record({
  startupSeconds: fc.integer({ min: 1, max: 9 }),
  secondsPerByte: fc.nat(9),
});

/**
 * Hierarchies for property tests, as group counts per level, coarsest level first. The last count is the number of
 * ranks. Includes groups of one rank and groups of all ranks.
 */
const cuts = fc.constantFrom([1], [3], [1, 2], [2, 2], [2, 4], [4, 4], [2, 2, 4], [1, 2, 4], [2, 4, 8], [3, 6]);

const routingOf = (numExperts: number, numTokens: number): fc.Arbitrary<Routing> =>
  fc
    .tuple(fc.integer({ min: 1, max: Math.min(4, numExperts) }), fc.integer({ min: 1, max: numExperts }))
    .chain(([numChoices, numCandidates]) => {
      // Tokens choose only among the first few experts, so that some experts have no load, or one expert has all load.
      const candidates = Array.from({ length: Math.max(numChoices, numCandidates) }, (_, expert) => expert);
      const token = fc
        .shuffledSubarray(candidates, { minLength: numChoices, maxLength: numChoices })
        .chain((chosen) => fc.tuple(...chosen.map((expert) => fc.constantFrom(expert, expert, expert, -1))));
      return fc
        .array(token, { minLength: numTokens, maxLength: numTokens })
        .map((tokens) => ({ numExperts, numChoices, choices: Int32Array.from(tokens.flat()) }));
    });

/**
 * Generates token exchanges for property tests: routings of all ranks' tokens, with a matching placement without
 * replicas and matching levels.
 */
export const exchangeCases: fc.Arbitrary<{
  readonly routing: Routing;
  readonly placement: ExpertPlacement;
  readonly levels: ExchangeLevels;
}> = fc.tuple(cuts, fc.integer({ min: 1, max: 3 }), fc.nat(4)).chain(([cut, numSlotsPerRank, tokensPerRank]) => {
  const numRanks = cut.at(-1)!;
  const groups = cut.slice(0, -1);
  return fc.record({
    routing: routingOf(numRanks * numSlotsPerRank, numRanks * tokensPerRank),
    placement: placementOf(numRanks, numSlotsPerRank),
    levels: fc.record({
      numRanks: fc.constant(numRanks),
      flat: line,
      levels: fc.tuple(
        ...groups.map((numGroups) => fc.record({ numGroups: fc.constant(numGroups), between: line, within: line })),
      ),
    }),
  });
});

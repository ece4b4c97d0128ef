import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { expertMoves } from "./expert-moves.ts";
import type { ExpertPlacement } from "./expert-placement.ts";
import { expertsOfRank, ranksOfExperts } from "./placement-lookups.ts";
import { placementWithReplicas } from "./arbitrary-placements.ts";

/** Generates pairs of placements of the same experts, with different numbers of slots. */
const pairs = placementWithReplicas.chain((before) =>
  fc
    .array(fc.nat(before.numExperts - 1), { maxLength: 6 })
    .chain((more) =>
      fc.shuffledSubarray([...before.expertOfSlot, ...more], { minLength: before.expertOfSlot.length + more.length }),
    )
    .map((experts): readonly [ExpertPlacement, ExpertPlacement] => {
      const expertOfSlot = [...experts];
      while (expertOfSlot.length % before.numRanks !== 0) expertOfSlot.push(0);
      return [before, { ...before, expertOfSlot }];
    }),
);

/** Returns the ranks of each host, with two ranks per host; the last host may have one rank. */
const hostsOfTwo = (numRanks: number): number[][] =>
  Array.from({ length: Math.ceil(numRanks / 2) }, (_, host) =>
    [2 * host, 2 * host + 1].filter((rank) => rank < numRanks),
  );

describe("expertMoves", () => {
  test("sends every rank its missing experts, from a holder, and nothing else", () => {
    fc.assert(
      fc.property(pairs, fc.boolean(), ([before, after], withHosts) => {
        const moves = expertMoves(before, after, withHosts ? { hosts: hostsOfTwo(before.numRanks) } : {});
        const arrived = new Set(moves.map(({ expert, to }) => `${expert} on ${to}`));
        expect(arrived.size).toBe(moves.length);
        for (const { expert, from } of moves) expect(expertsOfRank(before, from)).toContain(expert);
        for (let rank = 0; rank < before.numRanks; rank++) {
          const had = expertsOfRank(before, rank);
          for (let expert = 0; expert < before.numExperts; expert++)
            expect(arrived.has(`${expert} on ${rank}`)).toBe(
              expertsOfRank(after, rank).includes(expert) && !had.includes(expert),
            );
        }
      }),
    );
  });

  test("crosses hosts only if no rank of the receiver's host has the expert", () => {
    fc.assert(
      fc.property(pairs, ([before, after]) => {
        const hosts = hostsOfTwo(before.numRanks);
        const holders = ranksOfExperts(before);
        for (const { expert, from, to } of expertMoves(before, after, { hosts })) {
          const own = hosts.find((host) => host.includes(to))!;
          expect(own.includes(from)).toBe(holders[expert]!.some((rank) => own.includes(rank)));
        }
      }),
    );
  });

  test("moves nothing that is already there, and nothing within a rank", () => {
    fc.assert(
      fc.property(placementWithReplicas, (placement) => {
        expect(expertMoves(placement, placement)).toEqual([]);
        const rotated = Array.from({ length: placement.numRanks }, (_, rank) =>
          expertsOfRank(placement, rank).toReversed(),
        ).flat();
        expect(expertMoves(placement, { ...placement, expertOfSlot: rotated })).toEqual([]);
      }),
    );
  });

  test("alternates between equally close holders", () => {
    const before = { numExperts: 2, numRanks: 4, expertOfSlot: [0, 1, 0, 1, 0, 0, 0, 0] };
    const after = { ...before, expertOfSlot: [0, 1, 0, 1, 0, 1, 0, 1] };
    expect(expertMoves(before, after)).toEqual([
      { expert: 1, from: 0, to: 2 },
      { expert: 1, from: 1, to: 3 },
    ]);
    expect(expertMoves(before, after, { hosts: [[0, 2, 3], [1]] })).toEqual([
      { expert: 1, from: 0, to: 2 },
      { expert: 1, from: 0, to: 3 },
    ]);
  });

  test("rejects placements of other experts or ranks, and ranks without a host", () => {
    const one = { numExperts: 2, numRanks: 2, expertOfSlot: [0, 1] };
    expect(() => expertMoves(one, { ...one, numRanks: 1 })).toThrow(/2 experts on 2 ranks to 2 on 1/);
    expect(() => expertMoves(one, one, { hosts: [[0]] })).toThrow(/rank 1 of 2 is on no host/);
  });
});

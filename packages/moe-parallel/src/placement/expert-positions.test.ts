import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { placementWithoutReplicas } from "./arbitrary-placements.ts";
import { expertMoves } from "./expert-moves.ts";
import {
  nearestPositions,
  permuteToNearestRanks,
  placementFromPositions,
  positionsOfPlacement,
} from "./expert-positions.ts";
import type { ExpertPlacement } from "./expert-placement.ts";
import { expertsOfRank } from "./placement-lookups.ts";

test("positions and a placement without replicas convert to each other", () => {
  fc.assert(
    fc.property(placementWithoutReplicas, (placement) => {
      const places = positionsOfPlacement(placement);
      expect(placementFromPositions(places, placement.numRanks)).toEqual(placement);
      placement.expertOfSlot.forEach((expert, slot) => expect(places[expert]).toBe(slot));
    }),
  );
});

const pairs = placementWithoutReplicas.chain((before) =>
  fc.tuple(
    fc.constant(before),
    fc
      .shuffledSubarray([...before.expertOfSlot], { minLength: before.numExperts })
      .map((expertOfSlot): ExpertPlacement => ({ ...before, expertOfSlot })),
  ),
);

test("the nearest positions give each rank its new experts, and keep the positions of those that stay", () => {
  fc.assert(
    fc.property(pairs, ([before, after]) => {
      const places = positionsOfPlacement(before);
      const nearest = nearestPositions(places, after);
      const got = placementFromPositions(nearest, after.numRanks);
      for (let rank = 0; rank < after.numRanks; rank++)
        expect(expertsOfRank(got, rank).toSorted()).toEqual(expertsOfRank(after, rank).toSorted());
      const moved = new Set(expertMoves(before, after).map(({ expert }) => expert));
      nearest.forEach((place, expert) => {
        if (!moved.has(expert)) expect(place).toBe(places[expert]);
      });
    }),
  );
});

test("on the nearest ranks groups stay together, and experts that are already there do not move", () => {
  fc.assert(
    fc.property(pairs, fc.nat(4), ([before, after], turn) => {
      const groupsOf = (placement: ExpertPlacement): string[] =>
        Array.from({ length: placement.numRanks }, (_, rank) => expertsOfRank(placement, rank).join());
      const near = permuteToNearestRanks(before, after);
      expect(groupsOf(near).toSorted()).toEqual(groupsOf(after).toSorted());
      // Groups that exist on other ranks do not move at all.
      const groups = groupsOf(before);
      const rotated = groups.map((_, rank) => groups[(rank + turn) % groups.length]!);
      const sameGroups = { ...before, expertOfSlot: rotated.join().split(",").map(Number) };
      expect(permuteToNearestRanks(before, sameGroups)).toEqual(before);
    }),
  );
});

describe("positions that are not a permutation", () => {
  test.each([
    [[0, 0, 1, 2], /placement \[0, 0, 1, 2\] is not a permutation of 4 positions/],
    [[0, 1, 2, 4], /is not a permutation of 4 positions/],
    [[0, 1, 2], /3 slots are not divisible by 2 ranks/],
  ])("are rejected: %j", (places, message) => {
    expect(() => placementFromPositions(places, 2)).toThrow(message);
  });

  test("such as replicas, or other experts, are rejected", () => {
    const replicated = { numExperts: 3, numRanks: 2, expertOfSlot: [0, 1, 2, 0] };
    expect(() => positionsOfPlacement(replicated)).toThrow(/4 slots for 3 experts, so some have replicas/);
    expect(() => nearestPositions([0, 1], { numExperts: 4, numRanks: 2, expertOfSlot: [0, 1, 2, 3] })).toThrow(
      /positions of 2 experts, but a placement of 4/,
    );
  });
});

import { ArgumentError } from "@skein/tensor-core";
import { checkExpertPlacement, type ExpertPlacement } from "./expert-placement.ts";
import { ranksOfExperts } from "./placement-lookups.ts";

/**
 * Transfer of an expert's parameters and optimizer state from a rank that has the expert to a rank that does not have
 * it.
 */
export interface ExpertMove {
  readonly expert: number;
  readonly from: number;
  readonly to: number;
}

export interface ExpertMovesOptions {
  /** Ranks of each host. Default: all ranks are on one host. */
  readonly hosts?: readonly (readonly number[])[];
}

/**
 * Lists the transfers from one placement to another. The list is minimal: one move for each expert and rank, if the
 * rank has the expert after but not before. Changes of slots within a rank are not moves.
 *
 * The sender is a rank with the expert, on the receiver's host if possible. Among equally close ranks, the rank that
 * has sent the fewest copies so far is used, then the lowest rank.
 *
 * Cost: O(moves · holders).
 * @returns moves, ordered by expert, then by receiver.
 * @throws ArgumentError if the placements have different experts or ranks, or a rank has no host.
 * @example
 * ```ts
 * const [before, after] = [placementFromPositions([0, 1, 2, 3], 2), placementFromPositions([2, 1, 0, 3], 2)];
 * console.log(expertMoves(before, after)); // [{ expert: 0, from: 0, to: 1 }, { expert: 2, from: 1, to: 0 }]
 * ```
 */
export const expertMoves = (
  before: ExpertPlacement,
  after: ExpertPlacement,
  { hosts }: ExpertMovesOptions = {},
): readonly ExpertMove[] => {
  checkExpertPlacement(before);
  checkExpertPlacement(after);
  const { numExperts, numRanks } = before;
  if (after.numExperts !== numExperts || after.numRanks !== numRanks)
    throw new ArgumentError(
      `expertMoves: from ${numExperts} experts on ${numRanks} ranks to ${after.numExperts} on ${after.numRanks}; both placements must be of the same experts and ranks`,
    );
  const hostOf = Array.from({ length: numRanks }, (_, rank) => hosts?.findIndex((host) => host.includes(rank)) ?? 0);
  const unassigned = hostOf.indexOf(-1);
  if (unassigned !== -1)
    throw new ArgumentError(`expertMoves: rank ${unassigned} of ${numRanks} is on no host; name every rank once`);
  const numSent = Array.from({ length: numRanks }, () => 0);
  const holdersAfter = ranksOfExperts(after);
  return ranksOfExperts(before).flatMap((holders, expert) =>
    holdersAfter[expert]!.filter((to) => !holders.includes(to)).map((to) => {
      const near = holders.filter((rank) => hostOf[rank] === hostOf[to]);
      const from = (near.length > 0 ? near : holders).reduce((best, rank) =>
        numSent[rank]! < numSent[best]! ? rank : best,
      );
      numSent[from]! += 1;
      return { expert, from, to };
    }),
  );
};

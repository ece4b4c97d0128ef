import { ArgumentError } from "@skein/tensor-core";
import { checkExpertPlacement, type ExpertPlacement } from "./expert-placement.ts";
import { ranksOfExperts } from "./placement-lookups.ts";

/** An expert's parameters and optimizer state, from a rank that holds it to one that did not. */
export interface ExpertMove {
  readonly expert: number;
  readonly from: number;
  readonly to: number;
}

export interface ExpertMovesOptions {
  /** Ranks of each host. Default: all ranks are equally far from each other. */
  readonly hosts?: readonly (readonly number[])[];
}

/**
 * List what has to travel from one placement to another, all at once. It is the least: one move for each rank that
 * holds an expert then and not before. Slots that change within a rank are no moves.
 *
 * A copy comes from a holder of the receiver's own host if there is one; of equally near holders from the one with the
 * fewest copies to send so far, then from the lowest rank.
 *
 * Cost: O(moves · holders).
 * @returns ordered by expert, then by receiver.
 * @throws ArgumentError for placements of different experts or ranks, and for a rank without a host.
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
      `expertMoves: from ${numExperts} experts on ${numRanks} ranks to ${after.numExperts} on ${after.numRanks}; both placements are of the same experts and ranks`,
    );
  const hostOf = Array.from({ length: numRanks }, (_, rank) => hosts?.findIndex((host) => host.includes(rank)) ?? 0);
  const homeless = hostOf.indexOf(-1);
  if (homeless !== -1)
    throw new ArgumentError(`expertMoves: rank ${homeless} of ${numRanks} is on no host; name every rank once`);
  const numSent = Array.from({ length: numRanks }, () => 0);
  const wanted = ranksOfExperts(after);
  return ranksOfExperts(before).flatMap((holders, expert) =>
    wanted[expert]!.filter((to) => !holders.includes(to)).map((to) => {
      const near = holders.filter((rank) => hostOf[rank] === hostOf[to]);
      const from = (near.length > 0 ? near : holders).reduce((best, rank) =>
        numSent[rank]! < numSent[best]! ? rank : best,
      );
      numSent[from]! += 1;
      return { expert, from, to };
    }),
  );
};

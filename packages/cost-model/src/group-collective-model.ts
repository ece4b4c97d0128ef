import type { GroupSituation } from "@skein/collectives";
import type { CollectiveKind } from "@skein/tensor-core/backend";
import type { TransferTimes } from "./hardware/hardware.ts";
import { collectivePricer } from "./pricing/collective-price.ts";
import type { CollectivePiece, PiecewiseCollectiveModel } from "./collective-model.ts";

/** 2³⁴ bytes: more than any bucket. */
const mostDoublings = 34;

/**
 * Model a collective of a group whose links were measured, but not the collective itself: at each power of two what the
 * chosen algorithm takes in the α–β–γ model (`predictedSeconds` of the collectives), straight lines between. Pieces
 * that continue one another are one.
 *
 * Cost: 35 choices of an algorithm.
 *
 * @param group its size, hosts and links; `linkCosts(parseLinkFile(…))` of @skein/collectives and its entry `node`
 * gives the links.
 * @param readBack as of `collectivePricer`.
 * @throws InvariantError when no algorithm fits.
 */
export const collectiveModelOfGroup = (
  group: GroupSituation,
  kind: CollectiveKind = "all-reduce",
  readBack?: TransferTimes,
): PiecewiseCollectiveModel => {
  const price = collectivePricer(group, readBack);
  const secondsOf = (byteLength: number): number => price(kind, byteLength).seconds;
  const pieces: CollectivePiece[] = [];
  let before = secondsOf(1);
  for (let doubling = 0; doubling < mostDoublings; doubling++) {
    const bytes = 2 ** doubling;
    const after = secondsOf(2 * bytes);
    const secondsPerByte = (after - before) / bytes;
    const last = pieces.at(-1);
    // What rounding alone sets apart is one line.
    const continued =
      last !== undefined && Math.abs(last.startupSeconds + last.secondsPerByte * 2 * bytes - after) <= 1e-9 * after;
    if (!continued)
      pieces.push({
        fromBytes: doubling === 0 ? 0 : bytes,
        startupSeconds: Math.max(0, before - secondsPerByte * bytes),
        secondsPerByte,
      });
    before = after;
  }
  return { pieces };
};

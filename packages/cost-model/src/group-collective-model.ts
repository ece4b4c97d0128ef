import type { GroupSelectionOptions } from "@skein/collectives";
import type { CollectiveKind } from "@skein/tensor-core/backend";
import type { TransferTimes } from "./hardware/hardware.ts";
import { collectivePricer } from "./pricing/collective-price.ts";
import type { CollectivePiece, PiecewiseCollectiveModel } from "./collective-model.ts";

/** log2 of the largest modeled size, 2³⁴ bytes, which is more than any bucket. */
const maxDoublings = 34;

/**
 * Model of a collective in a group whose links were measured, but not the collective itself. At each power of two, the
 * time of the chosen algorithm in the α–β–γ model (`predictedSeconds` of the collectives package), with straight lines
 * between. Adjacent pieces on one line are merged.
 *
 * Cost: 35 choices of an algorithm.
 *
 * @param group its size, hosts and links; the links come from `linkCosts(parseLinkFile(…))` of @skein/collectives and
 * its entry `node`.
 * @param readBack see `collectivePricer`.
 * @throws InvariantError if no algorithm fits.
 */
export const collectiveModelOfGroup = (
  group: GroupSelectionOptions,
  kind: CollectiveKind = "all-reduce",
  readBack?: TransferTimes,
): PiecewiseCollectiveModel => {
  const price = collectivePricer(group, readBack);
  const secondsOf = (byteLength: number): number => price(kind, byteLength).seconds;
  const pieces: CollectivePiece[] = [];
  let before = secondsOf(1);
  for (let doubling = 0; doubling < maxDoublings; doubling++) {
    const bytes = 2 ** doubling;
    const after = secondsOf(2 * bytes);
    const secondsPerByte = (after - before) / bytes;
    const last = pieces.at(-1);
    // Pieces that differ only by rounding are one line.
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

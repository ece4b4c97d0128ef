import type { GroupSelectionOptions } from "@skein/collectives";
import type { CollectiveKind } from "@skein/tensor-core/backend";
import type { TransferTimes } from "./hardware/hardware.ts";
import { collectivePricer } from "./pricing/collective-price.ts";
import type { CollectivePiece, PiecewiseCollectiveModel } from "./collective-model.ts";

/** log2 of the largest modeled message size, 2³⁴ bytes, which exceeds the size of any bucket. */
const maxDoublings = 34;

/**
 * Builds the time model of a collective in a rank group from the group's measured link costs, without measurements of
 * the collective itself. The model interpolates linearly between message sizes that are powers of two. At these sizes
 * the model returns the time of the chosen algorithm in the α–β–γ model (`predictedSeconds` of the collectives
 * package). Adjacent pieces with the same linear function are merged.
 *
 * Cost: 35 algorithm selections.
 *
 * @param group Size, hosts and links of the group. `linkCosts(parseLinkFile(…))` of @skein/collectives (entry `node`)
 * returns links.
 * @param readBack Transfer times between device memory and host, as for `collectivePricer`.
 * @throws InvariantError if no algorithm fits.
 * @example
 * ```ts
 * const model = collectiveModelOfGroup({ worldSize: 4, sharesMemory: false });
 * console.log(collectiveSeconds(model, mebibytes(1)) < collectiveSeconds(model, mebibytes(64))); // true
 * ```
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
    // Merge adjacent pieces into one line if they differ only by a rounding error.
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

import { ArgumentError } from "@skein/tensor-core";
import { type CollectiveModel, collectiveSeconds } from "../../collective-model.ts";

/** A layer of experts behind a tensor-parallel attention: its ranks along "tensor" hold the same tokens. */
export interface ParmLayer {
  /** B · L of one rank. */
  readonly numTokens: number;
  /** M. */
  readonly hidden: number;
  /** H, of a whole expert. */
  readonly expertHidden: number;
  /** Matrix products of an expert: 2, or 3 where one gates another. */
  readonly numProducts: number;
  /** k. */
  readonly expertsPerToken: number;
  /** f; slots for tokens are k · f · B · L over all experts. */
  readonly capacityFactor: number;
  readonly bytesPerElement: number;
  /** N_MP, ranks that hold the same tokens. */
  readonly numTensorRanks: number;
  /** N_ESP, ranks that share an expert. */
  readonly numShards: number;
  /**
   * Whether each of those N_MP ranks has only its part of the tokens before the layer, and needs only that behind it,
   * as with sequence parallelism: then S1 gathers no outputs, and the others gather the tokens at first. Default:
   * false.
   */
  readonly hasOwnTokens?: boolean;
}

/** What collectives of a layer's groups take, by the bytes of the gathered, summed or exchanged whole. */
export interface ParmModels {
  /** Over ranks that hold the same shard of different experts. */
  readonly expertAllToAll: CollectiveModel;
  /** Over all ranks that hold shards of experts, whatever shard. */
  readonly fusedAllToAll: CollectiveModel;
  /** How many those are: in so many steps the fused all-to-all runs. */
  readonly fusedWorldSize: number;
  readonly shardAllGather: CollectiveModel;
  readonly shardAllReduce: CollectiveModel;
  readonly tensorAllGather: CollectiveModel;
}

/** "S1" splits tokens over the ranks that hold the same ones before the gate, "S2" after it. */
export type ParmSchedule = "baseline" | "S1" | "S2";

/** What a schedule of shards takes. */
export interface ParmCost {
  readonly communicationSeconds: number;
  /** Of one rank. */
  readonly expertFlops: number;
  readonly seconds: number;
}

const checkLayer = ({ hasOwnTokens: _, ...layer }: ParmLayer, { fusedWorldSize }: ParmModels): void => {
  for (const [name, value] of Object.entries({ ...layer, fusedWorldSize })) {
    const isCount = name !== "capacityFactor";
    if (!(value > 0 && Number.isFinite(value) && (!isCount || Number.isSafeInteger(value))))
      throw new ArgumentError(
        `parmCosts: ${name} is ${value}; use ${isCount ? "a whole number from 1" : "a finite number above 0"}`,
      );
  }
};

/**
 * Price an all-to-all in P steps of which each chunk, once there, is broadcast on another link while the next travels:
 * t_a2a / P + (P − 1) · max(t_a2a, t_ag) / P + t_ag / P = max(t_a2a, t_ag) + min(t_a2a, t_ag) / P.
 */
export const overlappedSeconds = (allToAllSeconds: number, allGatherSeconds: number, numSteps: number): number =>
  Math.max(allToAllSeconds, allGatherSeconds) + Math.min(allToAllSeconds, allGatherSeconds) / numSteps;

/**
 * Price one pass of a layer of experts whose ranks along "tensor" hold the same tokens, in the schedule of
 * DeepSpeed-MoE, where each of them does all work, and in Parm's two. With S = k · f · B · L slots:
 *
 *     baseline   AG_ESP(B · L · M · N_ESP) + AR_ESP(S · M · N_ESP) + 2 · A2A_EP(S · M · N_ESP)
 *     S1         2 · A2A(S · M · N_ESP / N_MP) + AG_MP(B · L · M)
 *     S2         A2A(S · M · N_ESP / N_MP) + overlap of another with AG_MP(S · M)
 *
 * Experts of S1 and S2 compute 1 / N_MP of the baseline's flops. S2 gathers k · f times as much as S1, but behind its
 * all-to-all: S1 is the better one where k · f is large or the links of the tensor group are slow. Slots are not
 * rounded to whole ones for each expert. With own tokens AG_MP(B · L · M) is added to the other two in place of S1.
 *
 * @param secondsPerFlop of an expert's products. Default: 0, communication alone.
 * @throws ArgumentError for sizes that are not positive, or impossible figures of a collective.
 *
 * Source: Parm, INFOCOM 2024, reconstructed from its abstract and its released kernel: the paper itself was not
 * reachable.
 */
export const parmCosts = (
  layer: ParmLayer,
  models: ParmModels,
  secondsPerFlop = 0,
): Readonly<Record<ParmSchedule, ParmCost>> => {
  checkLayer(layer, models);
  if (!(secondsPerFlop >= 0 && Number.isFinite(secondsPerFlop)))
    throw new ArgumentError(
      `parmCosts: experts take ${secondsPerFlop} s per flop; it must be finite and not negative; measure it anew`,
    );
  const { numTokens, hidden, expertHidden, numProducts, numTensorRanks, numShards, hasOwnTokens = false } = layer;
  const numSlots = layer.expertsPerToken * layer.capacityFactor * numTokens;
  const bytesOf = (rows: number): number => rows * hidden * layer.bytesPerElement;
  const costOf = (communicationSeconds: number, slotsOfShards: number): ParmCost => {
    const expertFlops = (2 * numProducts * slotsOfShards * hidden * expertHidden) / numShards;
    return { communicationSeconds, expertFlops, seconds: communicationSeconds + secondsPerFlop * expertFlops };
  };

  const allSlots = numSlots * numShards;
  const ownSlots = allSlots / numTensorRanks;
  const fused = collectiveSeconds(models.fusedAllToAll, bytesOf(ownSlots));
  const gathered = collectiveSeconds(models.tensorAllGather, bytesOf(numTokens));
  const [before, behind] = hasOwnTokens ? [gathered, 0] : [0, gathered];
  return {
    baseline: costOf(
      collectiveSeconds(models.shardAllGather, bytesOf(numTokens * numShards)) +
        collectiveSeconds(models.shardAllReduce, bytesOf(allSlots)) +
        2 * collectiveSeconds(models.expertAllToAll, bytesOf(allSlots)) +
        before,
      allSlots,
    ),
    S1: costOf(2 * fused + behind, ownSlots),
    S2: costOf(
      fused +
        overlappedSeconds(fused, collectiveSeconds(models.tensorAllGather, bytesOf(numSlots)), models.fusedWorldSize) +
        before,
      ownSlots,
    ),
  };
};

/** Choose the schedule with the least seconds; of equal ones the first of S1, S2 and the baseline. */
export const chooseParmSchedule = (costs: Readonly<Record<ParmSchedule, ParmCost>>): ParmSchedule => {
  const order: readonly ParmSchedule[] = ["S1", "S2", "baseline"];
  return order.reduce((best, schedule) => (costs[schedule].seconds < costs[best].seconds ? schedule : best));
};

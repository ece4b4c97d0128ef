import { ArgumentError } from "@skein/tensor-core";
import { type CollectiveModel, collectiveSeconds } from "../../collective-model.ts";

/** An expert layer after a tensor-parallel attention layer. Its ranks along the "tensor" axis have the same tokens. */
export interface ParmLayer {
  /** B · L: number of tokens per rank. */
  readonly numTokens: number;
  /** M: hidden width. */
  readonly hidden: number;
  /** H: hidden width of an unsharded expert. */
  readonly expertHidden: number;
  /** Number of matrix products per expert: 2, or 3 with a gate. */
  readonly numProducts: number;
  /** k: number of experts per token. */
  readonly expertsPerToken: number;
  /** f: capacity factor. All experts together have k · f · B · L slots for tokens. */
  readonly capacityFactor: number;
  readonly bytesPerElement: number;
  /** N_MP: number of ranks that have the same tokens. */
  readonly numTensorRanks: number;
  /** N_ESP: number of ranks that share an expert. */
  readonly numShards: number;
  /**
   * Whether each of the N_MP ranks has only its share of the tokens before the layer and needs only this share after
   * the layer, as with sequence parallelism. If true, S1 does not gather outputs, and the other schedules gather the
   * tokens first. Default: false.
   */
  readonly hasOwnTokens?: boolean;
}

/**
 * Time models of the layer's collectives, as functions of the full tensor's bytes: the gathered, summed or exchanged
 * tensor.
 */
export interface ParmModels {
  /** All-to-all among ranks with the same shard of different experts. */
  readonly expertAllToAll: CollectiveModel;
  /** All-to-all among all ranks with a shard of an expert. */
  readonly fusedAllToAll: CollectiveModel;
  /** Number of ranks in the fused all-to-all, which is also its number of steps. */
  readonly fusedWorldSize: number;
  readonly shardAllGather: CollectiveModel;
  readonly shardAllReduce: CollectiveModel;
  readonly tensorAllGather: CollectiveModel;
}

/**
 * Communication schedule of a layer. Ranks that have the same tokens split these tokens before the gate ("S1") or after
 * the gate ("S2").
 */
export type ParmSchedule = "baseline" | "S1" | "S2";

/** Predicted cost of a schedule. */
export interface ParmCost {
  readonly communicationSeconds: number;
  /** Expert flops on one rank. */
  readonly expertFlops: number;
  readonly seconds: number;
}

const checkLayer = ({ hasOwnTokens: _, ...layer }: ParmLayer, { fusedWorldSize }: ParmModels): void => {
  for (const [name, value] of Object.entries({ ...layer, fusedWorldSize })) {
    const isCount = name !== "capacityFactor";
    if (!(value > 0 && Number.isFinite(value) && (!isCount || Number.isSafeInteger(value))))
      throw new ArgumentError(
        `parmCosts: ${name} is ${value}, but must be ${isCount ? "a whole number from 1" : "a finite number above 0"}; correct ${name}`,
      );
  }
};

/**
 * Computes the seconds of an all-to-all in P steps. Each received chunk is broadcast over another link while the next
 * chunk is received: t_a2a / P + (P − 1) · max(t_a2a, t_ag) / P + t_ag / P = max(t_a2a, t_ag) + min(t_a2a, t_ag) / P.
 */
export const overlappedSeconds = (allToAllSeconds: number, allGatherSeconds: number, numSteps: number): number =>
  Math.max(allToAllSeconds, allGatherSeconds) + Math.min(allToAllSeconds, allGatherSeconds) / numSteps;

/**
 * Predicts the cost of one pass over an expert layer whose ranks along "tensor" have the same tokens. The baseline is
 * DeepSpeed-MoE's schedule, in which each of these ranks does all work. S1 and S2 are Parm's schedules. With S = k · f
 * · B · L slots:
 *
 *     baseline   AG_ESP(B · L · M · N_ESP) + AR_ESP(S · M · N_ESP) + 2 · A2A_EP(S · M · N_ESP)
 *     S1         2 · A2A(S · M · N_ESP / N_MP) + AG_MP(B · L · M)
 *     S2         A2A(S · M · N_ESP / N_MP) + another A2A, overlapped with AG_MP(S · M)
 *
 * With S1 and S2, experts compute 1 / N_MP of the baseline's flops. S2 gathers k · f times as many bytes as S1, but its
 * all-gather overlaps with its all-to-all: S1 is better if k · f is large or the links of the tensor group are slow.
 * The number of slots per expert is not rounded. With `hasOwnTokens`, the term AG_MP(B · L · M) is removed from S1 and
 * added to the other two schedules.
 *
 * @param secondsPerFlop Seconds per flop of the experts' matrix products. Default: 0, which counts communication only.
 * @throws ArgumentError if a size is not positive, or a collective has impossible values.
 *
 * @example
 * ```ts
 * const layer = {
 *   numTokens: 1024, hidden: 512, expertHidden: 2048, numProducts: 2, expertsPerToken: 2, capacityFactor: 1.25,
 *   bytesPerElement: 4, numTensorRanks: 2, numShards: 2,
 * };
 * const model = { startupSeconds: 1e-5, secondsPerByte: 1e-9 };
 * const models = {
 *   expertAllToAll: model, fusedAllToAll: model, fusedWorldSize: 4, shardAllGather: model, shardAllReduce: model,
 *   tensorAllGather: model,
 * };
 * console.log(planParmSchedule(parmCosts(layer, models))); // S2
 * ```
 * Source: Parm, INFOCOM 2024, reconstructed from its abstract and its released kernel, because the paper itself was not
 * available.
 */
export const parmCosts = (
  layer: ParmLayer,
  models: ParmModels,
  secondsPerFlop = 0,
): Readonly<Record<ParmSchedule, ParmCost>> => {
  checkLayer(layer, models);
  if (!(secondsPerFlop >= 0 && Number.isFinite(secondsPerFlop)))
    throw new ArgumentError(
      `parmCosts: secondsPerFlop is ${secondsPerFlop}, but must be finite and not negative; measure the experts again`,
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

/**
 * Chooses the fastest communication schedule of a layer. If schedules are equally fast, S1 is preferred to S2, and S2
 * to the baseline.
 * @example
 * ```ts
 * const cost = (seconds: number) => ({ communicationSeconds: seconds, expertFlops: 0, seconds });
 * console.log(planParmSchedule({ baseline: cost(3), S1: cost(1), S2: cost(2) })); // S1
 * ```
 */
export const planParmSchedule = (costs: Readonly<Record<ParmSchedule, ParmCost>>): ParmSchedule => {
  const order: readonly ParmSchedule[] = ["S1", "S2", "baseline"];
  return order.reduce((best, schedule) => (costs[schedule].seconds < costs[best].seconds ? schedule : best));
};

import type { PlacementJob } from "@skein/job/node";
import { singleChoices } from "@skein/moe-parallel/routing";
import {
  type ExchangeLevels,
  type ExchangeLine,
  exchangeSeconds,
  type ExpertMove,
  expertMoves,
  type ExpertPlacement,
  loadsOfRanks,
  moveGain,
  type MoveGain,
  nearestPositions,
  permuteToNearestRanks,
  placeHeaviestFirst,
  placementFromPositions,
  swapExperts,
} from "@skein/moe-parallel/placement";
import { expertCounts, type Routing } from "@skein/moe-parallel/routing";
import { InvariantError } from "@skein/tensor-core";

/** Data from which new slots for the experts of a layer are planned. Equal on all ranks. */
export interface LayerSituation {
  /** Slot index of each expert. Slots are numbered in rank order. */
  readonly places: readonly number[];
  /**
   * Load of each expert: number of tokens that choose the expert in a step, summed over all ranks, averaged over recent
   * steps.
   */
  readonly loads: readonly number[];
  /** Routing of the tokens of all ranks. Absent if the planner does not use it. */
  readonly routing?: Routing | undefined;
}

/**
 * Sizes and measured times from which the placement of experts is planned: rank counts, bytes per token and expert, and
 * the time of an all-to-all.
 */
export interface PlacementSetting {
  /** Number of ranks along the expert axis. */
  readonly numRanks: number;
  /** Number of ranks that hold the same experts. Each of these ranks has its own tokens. */
  readonly numReplicas: number;
  /** Bytes sent per token. */
  readonly bytesPerToken: number;
  /** Bytes of an expert's parameters and of the optimizer's state for these parameters. */
  readonly bytesPerExpert: number;
  /**
   * Whether a token is sent once per chosen expert. If false, a token is sent once to each rank that holds a chosen
   * expert.
   */
  readonly sendsEachChoice: boolean;
  /**
   * Measured time of an all-to-all: startup time, and time per byte. Absent: the gain of a move is not compared with
   * the cost of the move.
   */
  readonly line?: ExchangeLine | undefined;
}

/** New slots of the experts of a layer. */
export interface PlannedSlots {
  readonly places: readonly number[];
  readonly moves: readonly ExpertMove[];
  /**
   * Load of the busiest rank before the moves, divided by the mean load per rank; 1 if all ranks have the same load.
   */
  readonly busiestBefore: number;
  readonly busiestAfter: number;
  /** Gain and cost of the moves. Absent: the gain was not compared with the cost. */
  readonly gain?: MoveGain | undefined;
}

/** Number of all-to-alls per step: dispatch and combine, in the forward and in the backward pass. */
const exchangesPerStep = 4;

/**
 * Minimum relative gain of a placement. Smaller gains are ignored, because rounding alone can cause such differences
 * when loads are summed in another order.
 */
const roundingGain = 1e-6;

const greatest = (numbers: readonly number[]): number => numbers.reduce((a, b) => Math.max(a, b), 0);

/**
 * An improved expert placement, and the predicted time of one token exchange before and after the change, in seconds.
 * The times are valid only if the time of an all-to-all was measured.
 */
interface BetterPlacement {
  readonly placement: ExpertPlacement;
  readonly loads: readonly number[];
  readonly before: number;
  readonly after: number;
}

const byLoads = (
  before: ExpertPlacement,
  loads: readonly number[],
  setting: PlacementSetting,
): BetterPlacement | undefined => {
  const { numRanks, numReplicas, bytesPerToken, line } = setting;
  const wanted = placeHeaviestFirst(loads, { numRanks });
  const [now, then] = [before, wanted].map((placement) => greatest(loadsOfRanks(placement, loads)));
  if (!(then! < now! * (1 - roundingGain))) return undefined;
  // Each rank of the expert axis sends 1/numRanks of the load to the busiest rank, and all messages have the length of
  // the longest message.
  const seconds = (load: number): number =>
    line === undefined ? 0 : line.startupSeconds + (line.secondsPerByte * load * bytesPerToken) / numReplicas;
  return { placement: permuteToNearestRanks(before, wanted), loads, before: seconds(now!), after: seconds(then!) };
};

const bySwaps = (
  before: ExpertPlacement,
  routing: Routing,
  maxSwaps: number,
  { numRanks, numReplicas, bytesPerToken, sendsEachChoice, line }: PlacementSetting,
): BetterPlacement | undefined => {
  const sent = sendsEachChoice ? singleChoices(routing) : routing;
  // Without measured times, the decision depends only on token counts, which are equal when a step is repeated.
  const levels: ExchangeLevels = { numRanks, flat: line ?? { startupSeconds: 0, secondsPerByte: 1 }, levels: [] };
  // Tokens of all replicas are concatenated, as if one replica had all tokens. So the bytes per token are divided by
  // the number of replicas.
  const options = { bytesPerToken: bytesPerToken / numReplicas };
  const { placement, swaps } = swapExperts(sent, before, levels, { ...options, maxSwaps });
  if (swaps.length === 0) return undefined;
  const seconds = (of: ExpertPlacement): number => exchangeSeconds(sent, of, levels, options)[0]!;
  return { placement, loads: expertCounts(routing), before: seconds(before), after: seconds(placement) };
};

/**
 * Chooses better slots for the experts of a layer. Pure: ranks with equal inputs make equal choices.
 *
 * @returns undefined if the planner finds no better slots, or if the job has `when: pays` and the moves would cost more
 * time than they save.
 */
export const planSlots = (
  job: PlacementJob,
  { places, loads, routing }: LayerSituation,
  setting: PlacementSetting,
): PlannedSlots | undefined => {
  const { numRanks, bytesPerExpert, line } = setting;
  const before = placementFromPositions(places, numRanks);
  if (job.planner === "swap" && routing === undefined) throw new InvariantError("experts are swapped by their routing");
  const found =
    job.planner === "swap" ? bySwaps(before, routing!, job.swaps, setting) : byLoads(before, loads, setting);
  if (found === undefined) return undefined;
  const after = nearestPositions(places, found.placement);
  const placement = placementFromPositions(after, numRanks);
  const moves = expertMoves(before, placement);
  if (job.when === "pays" && line === undefined) throw new InvariantError("a gain is weighed by measured times");
  const gain =
    job.when === "pays"
      ? moveGain(moves, {
          secondsBefore: exchangesPerStep * found.before,
          secondsAfter: exchangesPerStep * found.after,
          numSteps: job.everySteps,
          bytesPerExpert,
          link: line!,
        })
      : undefined;
  if (gain?.paysOff === false) return undefined;
  const mean = found.loads.reduce((sum, load) => sum + load, 0) / numRanks;
  const busiest = (of: ExpertPlacement): number => greatest(loadsOfRanks(of, found.loads)) / mean;
  return { places: after, moves, busiestBefore: busiest(before), busiestAfter: busiest(placement), gain };
};

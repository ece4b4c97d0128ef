import {
  type ExchangeLevels,
  type ExchangeLine,
  exchangeSeconds,
  expertCounts,
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
  type Routing,
  swapExperts,
} from "@skein/moe-parallel";
import { InvariantError } from "@skein/tensor-core";
import type { PlacementJob } from "../job/job.ts";

/** Known facts about a layer of experts when it is placed again; the same on all ranks. */
export interface LayerSituation {
  /** Slot of each expert. */
  readonly places: readonly number[];
  /** Number of choices of each expert in a step, summed over all ranks: the mean of recent steps. */
  readonly loads: readonly number[];
  /** Routing of the tokens of all ranks. Absent: the planner does not use it. */
  readonly routing?: Routing | undefined;
}

/** Ranks, sizes and costs for placing experts. */
export interface PlacementSetting {
  /** Number of ranks along the expert axis. */
  readonly numRanks: number;
  /** Number of ranks that hold the same experts, each with its own tokens. */
  readonly numReplicas: number;
  /** Bytes of a sent token. */
  readonly bytesPerToken: number;
  /** Bytes of an expert's parameters and of the optimizer's state for them. */
  readonly bytesPerExpert: number;
  /** Whether a token is sent once per choice, instead of once to each rank that it needs. */
  readonly sendsEachChoice: boolean;
  /** Measured time of an all-to-all. Absent: gains are not compared with the cost of moves. */
  readonly line?: ExchangeLine | undefined;
}

/** New slots of a layer's experts. */
export interface PlannedSlots {
  readonly places: readonly number[];
  readonly moves: readonly ExpertMove[];
  /** Predicted load of the busiest rank over the mean of ranks: 1 if all ranks have the same load. */
  readonly busiestBefore: number;
  readonly busiestAfter: number;
  /** Absent: gains are not compared with the cost of moves. */
  readonly gain?: MoveGain | undefined;
}

/** Tokens are sent there and back, in the forward and in the backward pass. */
const exchangesPerStep = 4;

/** Relative gain below which two sums of the same loads may differ only by rounding. */
const roundingGain = 1e-6;

const greatest = (numbers: readonly number[]): number => numbers.reduce((a, b) => Math.max(a, b), 0);

/** Treat each choice as a token with one choice. */
const singleChoices = ({ numExperts, choices }: Routing): Routing => ({ numExperts, numChoices: 1, choices });

/** A better placement, and the seconds of a token exchange before and after. */
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
  // Each rank of the axis sends the busiest rank its part, and messages are as long as the longest.
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
  // Without measured times, only counts decide, which are the same when a step is repeated.
  const levels: ExchangeLevels = { numRanks, flat: line ?? { startupSeconds: 0, secondsPerByte: 1 }, levels: [] };
  // The tokens of all replicas are concatenated like tokens of one rank.
  const options = { bytesPerToken: bytesPerToken / numReplicas };
  const { placement, swaps } = swapExperts(sent, before, levels, { ...options, maxSwaps });
  if (swaps.length === 0) return undefined;
  const seconds = (of: ExpertPlacement): number => exchangeSeconds(sent, of, levels, options)[0]!;
  return { placement, loads: expertCounts(routing), before: seconds(before), after: seconds(placement) };
};

/**
 * Choose better slots for the experts of a layer. Pure: ranks with the same numbers make the same choice.
 *
 * @returns undefined if the planner finds no better slots, or if a job moves experts only when it pays and these moves
 * would not pay.
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

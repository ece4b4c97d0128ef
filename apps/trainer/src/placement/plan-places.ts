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
  nearestPlaces,
  onNearestRanks,
  placeHeaviestFirst,
  placementOfPlaces,
  type Routing,
  swapExperts,
} from "@skein/moe-parallel";
import { InvariantError } from "@skein/tensor-core";
import type { PlacementJob } from "../job/job.ts";

/** What is known of a layer of experts when it is placed anew; the same on all ranks. */
export interface LayerSituation {
  /** Place of each expert. */
  readonly places: readonly number[];
  /** Choices of each expert in a step, of all ranks together: the mean of recent steps. */
  readonly loads: readonly number[];
  /** Of the tokens of all ranks, for planners that look at them. */
  readonly routing?: Routing | undefined;
}

/** What experts are placed on. */
export interface PlacementSetting {
  /** Along the axis of experts. */
  readonly numRanks: number;
  /** Ranks that hold the same experts, each with tokens of its own. */
  readonly numReplicas: number;
  /** What one token weighs on its way. */
  readonly bytesPerToken: number;
  /** An expert's parameters and what the optimizer keeps for them. */
  readonly bytesPerExpert: number;
  /** Whether a token travels once for each of its choices, and not once to each rank that it needs. */
  readonly sendsEachChoice: boolean;
  /** Measured time of an all-to-all, where gains are weighed against what moves take. */
  readonly line?: ExchangeLine | undefined;
}

/** Where a layer's experts go. */
export interface PlannedPlaces {
  readonly places: readonly number[];
  readonly moves: readonly ExpertMove[];
  /** Load of the busiest rank over the mean of ranks, as predicted: 1 where all have as much. */
  readonly busiestBefore: number;
  readonly busiestAfter: number;
  /** Where gains are weighed. */
  readonly gain?: MoveGain | undefined;
}

/** Tokens go there and back, in the forward and in the backward pass. */
const exchangesPerStep = 4;

/** Relative gain below which two sums of the same loads may differ by their order alone. */
const roundingGain = 1e-6;

const greatest = (numbers: readonly number[]): number => numbers.reduce((a, b) => Math.max(a, b), 0);

/** Each choice as a token with one choice. */
const choicesApart = ({ numExperts, choices }: Routing): Routing => ({ numExperts, numChoices: 1, choices });

/** A placement that a planner finds better, and what an exchange of tokens takes before and after, in seconds. */
interface Found {
  readonly placement: ExpertPlacement;
  readonly loads: readonly number[];
  readonly before: number;
  readonly after: number;
}

const byLoads = (before: ExpertPlacement, loads: readonly number[], setting: PlacementSetting): Found | undefined => {
  const { numRanks, numReplicas, bytesPerToken, line } = setting;
  const wanted = placeHeaviestFirst(loads, { numRanks });
  const [now, then] = [before, wanted].map((placement) => greatest(loadsOfRanks(placement, loads)));
  if (!(then! < now! * (1 - roundingGain))) return undefined;
  // Of the busiest rank each rank of the axis sends it its part, and messages are as long as the longest.
  const seconds = (load: number): number =>
    line === undefined ? 0 : line.startupSeconds + (line.secondsPerByte * load * bytesPerToken) / numReplicas;
  return { placement: onNearestRanks(before, wanted), loads, before: seconds(now!), after: seconds(then!) };
};

const bySwaps = (
  before: ExpertPlacement,
  routing: Routing,
  maxSwaps: number,
  { numRanks, numReplicas, bytesPerToken, sendsEachChoice, line }: PlacementSetting,
): Found | undefined => {
  const sent = sendsEachChoice ? choicesApart(routing) : routing;
  // Without measured times counts alone decide, which are the same whenever a step is done again.
  const levels: ExchangeLevels = { numRanks, flat: line ?? { startupSeconds: 0, secondsPerByte: 1 }, levels: [] };
  // The tokens of all replicas stand side by side as those of one rank.
  const options = { bytesPerToken: bytesPerToken / numReplicas };
  const { placement, swaps } = swapExperts(sent, before, levels, { ...options, maxSwaps });
  if (swaps.length === 0) return undefined;
  const seconds = (of: ExpertPlacement): number => exchangeSeconds(sent, of, levels, options)[0]!;
  return { placement, loads: expertCounts(routing), before: seconds(before), after: seconds(placement) };
};

/**
 * Choose better places for the experts of a layer. Pure: ranks with the same numbers decide alike.
 *
 * @returns none where the planner finds no better ones, or where a job moves only what pays and these would not.
 */
export const planPlaces = (
  job: PlacementJob,
  { places, loads, routing }: LayerSituation,
  setting: PlacementSetting,
): PlannedPlaces | undefined => {
  const { numRanks, bytesPerExpert, line } = setting;
  const before = placementOfPlaces(places, numRanks);
  if (job.planner === "swap" && routing === undefined) throw new InvariantError("experts are swapped by their routing");
  const found =
    job.planner === "swap" ? bySwaps(before, routing!, job.swaps, setting) : byLoads(before, loads, setting);
  if (found === undefined) return undefined;
  const after = nearestPlaces(places, found.placement);
  const placement = placementOfPlaces(after, numRanks);
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

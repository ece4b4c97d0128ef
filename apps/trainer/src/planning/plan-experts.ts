import {
  backwardChunksOf,
  type DispatchChoice,
  type DispatchedLayer,
  type DispatchLinks,
  type LayerComputing,
  type LinearCollectiveModel,
  type PredictedDispatch,
  rankDispatches,
} from "@skein/cost-model";
import { numFusedShards } from "../job/build-shards.ts";
import { everyRankAxis, expertAxis, expertShardsAxis, meshOf } from "../job/mesh.ts";
import { type Agree, agreement } from "./agree.ts";
import { dispatchChoices, type ExpertsPlan, isSameChoice, mostChunksOf, travelLevels } from "../plans/experts-plan.ts";
import { measureAllToAlls } from "./measure-exchange.ts";
import { dispatchedLayer, type ExpertsInput, measureChoices, measureComputing } from "./measure-experts.ts";

/** What is timed beside the flat way in one chunk. */
const mostTimed = 4;
/**
 * How many times as long as the best of all something may be predicted to take, and be timed. Predictions are not that
 * wrong; and what takes far longer, such as slots for all tokens, takes far more memory too.
 */
const mostBehind = 2;

/** A choice that was timed. */
export interface TimedDispatch extends PredictedDispatch {
  readonly measuredSeconds: number;
}

/**
 * Leave out what no layer is cut into: of fewer slots or tokens than chunks, each is one.
 *
 * @returns one choice at least, since the first has the fewest chunks.
 */
export const possibleChoices = <Choice extends DispatchChoice>(
  choices: readonly [Choice, ...Choice[]],
  { numTokens, slots }: Pick<DispatchedLayer, "numTokens" | "slots">,
): readonly [Choice, ...Choice[]] => {
  const [flat, ...others] = choices;
  return [flat, ...others.filter((choice) => mostChunksOf(choice) <= (choice.way === "dense" ? slots : numTokens))];
};

/**
 * What is worth timing: the flat way in the fewest chunks first, then those that are predicted to be the fastest.
 *
 * @param predicted the fastest first.
 */
export const choicesToTime = (
  predicted: readonly PredictedDispatch[],
  flat: DispatchChoice,
): readonly PredictedDispatch[] => {
  const most = mostBehind * predicted[0]!.seconds;
  const others = predicted.filter((choice) => !isSameChoice(choice, flat) && choice.seconds <= most);
  return [...predicted.filter((choice) => isSameChoice(choice, flat)), ...others.slice(0, mostTimed)];
};

/** Choose what was measured to be the fastest; of equal ones the first, then that with the fewest chunks. */
export const fastestMeasured = (timed: readonly [TimedDispatch, ...TimedDispatch[]]): TimedDispatch => {
  const [flat, ...others] = timed;
  return others
    .toSorted((a, b) => a.measuredSeconds - b.measuredSeconds || a.numChunks - b.numChunks)
    .reduce((best, each) => (each.measuredSeconds < best.measuredSeconds ? each : best), flat);
};

const milliseconds = (seconds: number): string => `${(1000 * seconds).toPrecision(3)} ms`;

const inChunks = (numChunks: number): string => `${numChunks} ${numChunks === 1 ? "chunk" : "chunks"}`;

const nameOf = (choice: DispatchChoice): string => {
  const { way, numChunks } = choice;
  const backward = backwardChunksOf(choice);
  return `${way} in ${inChunks(numChunks)}${backward === numChunks ? "" : ` and back in ${backward}`}`;
};

const timesOf = ({ measuredSeconds, seconds }: TimedDispatch): string =>
  `${milliseconds(measuredSeconds)} (predicted ${milliseconds(seconds)})`;

/** What was decided, and why, in one line. */
export const remarkOnExperts = (
  chosen: TimedDispatch,
  timed: readonly [TimedDispatch, ...TimedDispatch[]],
  numChoices: number,
): string => {
  const [flat] = timed;
  const beside = isSameChoice(chosen, flat) ? "" : `, ${nameOf(flat)} ${timesOf(flat)}`;
  return `tokens travel to experts ${nameOf(chosen)}, the fastest of ${timed.length} measured of ${numChoices} predicted; a layer takes ${timesOf(chosen)}${beside}, with tokens drawn at random`;
};

/** Times of computing that all ranks take for theirs. */
const agreeOnComputing = async ({ apart, ...own }: LayerComputing, agree: Agree): Promise<LayerComputing> => {
  const [expertSeconds, chunkSeconds, otherSeconds, copySeconds] = (await agree([
    own.expertSeconds,
    own.chunkSeconds,
    own.otherSeconds,
    apart?.copySeconds ?? 0,
  ])) as [number, number, number, number];
  return { expertSeconds, chunkSeconds, otherSeconds, apart: apart && { ...apart, copySeconds } };
};

/** The layer as dispatchers see it: each shard is an expert, and a token goes to all shards of those that it chose. */
const toShards = (layer: DispatchedLayer, numShards: number): DispatchedLayer => ({
  ...layer,
  numExperts: layer.numExperts * numShards,
  expertsPerToken: layer.expertsPerToken * numShards,
});

/** All-to-alls among the ranks that tokens travel between, as far as there are several. */
const linksOf = async (input: ExpertsInput): Promise<DispatchLinks> => {
  const { job, experts } = input;
  const numShards = numFusedShards(experts, job.mesh);
  const numRanks = job.mesh.expert * numShards;
  if (numRanks === 1) return { numRanks, flat: { startupSeconds: 0, secondsPerByte: 0 }, levels: [] };
  const levels = travelLevels(experts, job.mesh);
  const axes = [numShards > 1 ? expertShardsAxis : expertAxis, ...levels.map(({ axis }) => axis)];
  const [flat, ...ofLevels] = (await measureAllToAlls(input, axes)) as [LinearCollectiveModel];
  return { numRanks, flat, levels: levels.map(({ size }, i) => ({ size, model: ofLevels[i]! })) };
};

/** What was decided for experts, with the line of their all-to-all where it was measured. */
export interface PlannedExperts {
  readonly plan: ExpertsPlan;
  readonly remark: string;
  readonly allToAll?: LinearCollectiveModel;
}

/**
 * Decide how tokens travel to the experts of a job, and in how many chunks. All choices are predicted, from all-to-alls
 * of each level and from what computing takes; the most promising are timed, a layer by itself on all ranks, beside the
 * flat way in one chunk, and the fastest is taken. Ranks agree on what rank 0 has measured. All ranks call it together.
 */
export const planExperts = async (input: ExpertsInput): Promise<PlannedExperts> => {
  const { job, experts, backend, communicators } = input;
  const layer = dispatchedLayer(input);
  const choices = possibleChoices(dispatchChoices(experts, job.mesh), layer);
  const planOf = ({ way, numChunks, backwardChunks }: DispatchChoice): ExpertsPlan => ({
    dispatch: way,
    chunks: numChunks,
    ...(backwardChunks !== undefined && { backwardChunks }),
  });
  const [flat] = choices;
  if (choices.length === 1)
    return { plan: planOf(flat), remark: `tokens travel to experts ${nameOf(flat)}: there is no other way here` };
  const agree = agreement(backend, communicators, everyRankAxis(meshOf(job)));
  try {
    const links = await linksOf(input);
    const computing = await agreeOnComputing(await measureComputing(input, layer, choices), agree);
    const predicted = rankDispatches(choices, toShards(layer, numFusedShards(experts, job.mesh)), links, computing);
    const tried = choicesToTime(predicted, flat);
    const measured = await agree(await measureChoices(input, tried));
    const all = tried.map((choice, i) => ({ ...choice, measuredSeconds: measured[i]! })) as [TimedDispatch];
    const chosen = fastestMeasured(all);
    return {
      plan: planOf(chosen),
      remark: remarkOnExperts(chosen, all, choices.length),
      ...(links.numRanks > 1 && { allToAll: links.flat as LinearCollectiveModel }),
    };
  } finally {
    agree.release();
  }
};

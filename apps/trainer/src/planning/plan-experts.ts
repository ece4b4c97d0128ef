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
import { dispatchChoices, type ExpertsPlan, isSameChoice, maxChunksOf, exchangeLevels } from "../plans/experts-plan.ts";
import { measureAllToAlls } from "./measure-exchange.ts";
import { dispatchedLayer, type ExpertsInput, measureChoices, measureComputing } from "./measure-experts.ts";

/** Maximum number of choices to time, in addition to the flat method in one chunk. */
const maxTimed = 4;
/**
 * Maximum ratio of a choice's predicted time to the best, for it to be timed. Predictions are not more wrong than that,
 * and much slower choices, such as slots for all tokens, need much more memory too.
 */
const maxSlowdown = 2;

/** A timed choice. */
export interface TimedDispatch extends PredictedDispatch {
  readonly measuredSeconds: number;
}

/**
 * Remove choices with more chunks than slots or tokens, because no layer can be split into them.
 *
 * @returns at least one choice, because the first has the fewest chunks.
 */
export const possibleChoices = <Choice extends DispatchChoice>(
  choices: readonly [Choice, ...Choice[]],
  { numTokens, slots }: Pick<DispatchedLayer, "numTokens" | "slots">,
): readonly [Choice, ...Choice[]] => {
  const [flat, ...others] = choices;
  return [flat, ...others.filter((choice) => maxChunksOf(choice) <= (choice.way === "dense" ? slots : numTokens))];
};

/**
 * Choices that are worth timing: the flat method with the fewest chunks first, then the fastest predictions.
 *
 * @param predicted choices, fastest first.
 */
export const choicesToTime = (
  predicted: readonly PredictedDispatch[],
  flat: DispatchChoice,
): readonly PredictedDispatch[] => {
  const most = maxSlowdown * predicted[0]!.seconds;
  const others = predicted.filter((choice) => !isSameChoice(choice, flat) && choice.seconds <= most);
  return [...predicted.filter((choice) => isSameChoice(choice, flat)), ...others.slice(0, maxTimed)];
};

/** Choose the fastest measured choice; of equal ones the first, then the one with the fewest chunks. */
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

/** Describe the decision and its reasons in one line. */
export const remarkOnExperts = (
  chosen: TimedDispatch,
  timed: readonly [TimedDispatch, ...TimedDispatch[]],
  numChoices: number,
): string => {
  const [flat] = timed;
  const flatRemark = isSameChoice(chosen, flat) ? "" : `, ${nameOf(flat)} ${timesOf(flat)}`;
  return `token dispatch to experts: ${nameOf(chosen)}, the fastest of ${timed.length} measured and ${numChoices} predicted choices; a layer takes ${timesOf(chosen)}${flatRemark}, with random tokens`;
};

/** Broadcast the computing times of rank 0 to all ranks. */
const agreeOnComputing = async ({ apart, ...own }: LayerComputing, agree: Agree): Promise<LayerComputing> => {
  const [expertSeconds, chunkSeconds, otherSeconds, copySeconds] = (await agree([
    own.expertSeconds,
    own.chunkSeconds,
    own.otherSeconds,
    apart?.copySeconds ?? 0,
  ])) as [number, number, number, number];
  return { expertSeconds, chunkSeconds, otherSeconds, apart: apart && { ...apart, copySeconds } };
};

/**
 * The layer as dispatchers see it: each shard is an expert, and a token is sent to all shards of its chosen experts.
 */
const toShards = (layer: DispatchedLayer, numShards: number): DispatchedLayer => ({
  ...layer,
  numExperts: layer.numExperts * numShards,
  expertsPerToken: layer.expertsPerToken * numShards,
});

/** Time the all-to-alls of the token exchange, for levels with several ranks. */
const linksOf = async (input: ExpertsInput): Promise<DispatchLinks> => {
  const { job, experts } = input;
  const numShards = numFusedShards(experts, job.mesh);
  const numRanks = job.mesh.expert * numShards;
  if (numRanks === 1) return { numRanks, flat: { startupSeconds: 0, secondsPerByte: 0 }, levels: [] };
  const levels = exchangeLevels(experts, job.mesh);
  const axes = [numShards > 1 ? expertShardsAxis : expertAxis, ...levels.map(({ axis }) => axis)];
  const [flat, ...levelModels] = (await measureAllToAlls(input, axes)) as [LinearCollectiveModel];
  return { numRanks, flat, levels: levels.map(({ size }, i) => ({ size, model: levelModels[i]! })) };
};

/** Plan of the dispatch, with the time model of the experts' all-to-all if it was measured. */
export interface PlannedExperts {
  readonly plan: ExpertsPlan;
  readonly remark: string;
  readonly allToAll?: LinearCollectiveModel;
}

/**
 * Choose the dispatch method of a job's experts and its number of chunks. All choices are predicted from the
 * all-to-alls of each level and from computing times. The most promising choices are timed with one layer on all ranks,
 * next to the flat method in one chunk, and the fastest is used. Ranks use the measurements of rank 0. All ranks call
 * it together.
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
    return { plan: planOf(flat), remark: `token dispatch to experts: ${nameOf(flat)}, the only choice here` };
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

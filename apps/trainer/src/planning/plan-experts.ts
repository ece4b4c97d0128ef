import { everyRankAxis, expertAxis, expertShardsAxis, meshOf, numFusedShards } from "@skein/job/node";
import { millisecondsText } from "@skein/report";
import {
  backwardChunksOf,
  type DispatchChoice,
  type DispatchedLayer,
  type DispatchLinks,
  type LayerComputing,
  type PredictedDispatch,
  rankDispatches,
} from "@skein/cost-model/planners";
import type { LinearCollectiveModel } from "@skein/cost-model";
import { dispatchChoices, exchangeLevels, type ExpertsPlan, isSameChoice, maxChunksOf } from "@skein/step/node";
import { type Agree, agreement } from "./agree.ts";
import { measureAllToAlls } from "./measure-exchange.ts";
import { dispatchedLayer, type ExpertsInput, measureChoices, measureComputing } from "./measure-experts.ts";

/** Maximum number of dispatch choices to measure, in addition to the flat method in one chunk. */
const maxTimed = 4;
/**
 * Maximum ratio of a choice's predicted time to the fastest predicted time. Slower choices are not measured, because
 * predictions are accurate within this factor. Some of the slower choices, such as one expert slot per token, would
 * also need much more memory.
 */
const maxSlowdown = 2;

/** A dispatch choice with its predicted and measured times. */
export interface TimedDispatch extends PredictedDispatch {
  readonly measuredSeconds: number;
}

/**
 * Removes dispatch choices with more chunks than expert slots or tokens, because no layer can be split into that many
 * chunks.
 *
 * @returns the possible choices, at least the first choice, which has the fewest chunks.
 */
export const possibleChoices = <Choice extends DispatchChoice>(
  choices: readonly [Choice, ...Choice[]],
  { numTokens, slots }: Pick<DispatchedLayer, "numTokens" | "slots">,
): readonly [Choice, ...Choice[]] => {
  const [flat, ...others] = choices;
  return [flat, ...others.filter((choice) => maxChunksOf(choice) <= (choice.way === "dense" ? slots : numTokens))];
};

/**
 * Selects the dispatch choices to measure: first the flat method with the fewest chunks, then the choices with the
 * shortest predicted times.
 *
 * @param predicted Choices with predicted times, fastest first.
 */
export const choicesToTime = (
  predicted: readonly PredictedDispatch[],
  flat: DispatchChoice,
): readonly PredictedDispatch[] => {
  const most = maxSlowdown * predicted[0]!.seconds;
  const others = predicted.filter((choice) => !isSameChoice(choice, flat) && choice.seconds <= most);
  return [...predicted.filter((choice) => isSameChoice(choice, flat)), ...others.slice(0, maxTimed)];
};

/**
 * Returns the fastest measured choice. If times are equal, the first choice in the list is preferred, then the choice
 * with the fewest chunks.
 */
export const fastestMeasured = (timed: readonly [TimedDispatch, ...TimedDispatch[]]): TimedDispatch => {
  const [flat, ...others] = timed;
  return others
    .toSorted((a, b) => a.measuredSeconds - b.measuredSeconds || a.numChunks - b.numChunks)
    .reduce((best, each) => (each.measuredSeconds < best.measuredSeconds ? each : best), flat);
};

const inChunks = (numChunks: number): string => `${numChunks} ${numChunks === 1 ? "chunk" : "chunks"}`;

const nameOf = (choice: DispatchChoice): string => {
  const { way, numChunks } = choice;
  const backward = backwardChunksOf(choice);
  return `${way} in ${inChunks(numChunks)}${backward === numChunks ? "" : ` and back in ${backward}`}`;
};

const timesOf = ({ measuredSeconds, seconds }: TimedDispatch): string =>
  `${millisecondsText(measuredSeconds)} (predicted ${millisecondsText(seconds)})`;

/** Formats the decision and its reasons as one line. */
export const remarkOnExperts = (
  chosen: TimedDispatch,
  timed: readonly [TimedDispatch, ...TimedDispatch[]],
  numChoices: number,
): string => {
  const [flat] = timed;
  const flatRemark = isSameChoice(chosen, flat) ? "" : `, ${nameOf(flat)} ${timesOf(flat)}`;
  return `token dispatch to experts: ${nameOf(chosen)}, the fastest of ${timed.length} measured and ${numChoices} predicted choices; a layer takes ${timesOf(chosen)}${flatRemark}, with random tokens`;
};

/** Broadcasts the compute times of rank 0 to all ranks. */
const agreeOnComputing = async (
  { separateBackward, ...own }: LayerComputing,
  agree: Agree,
): Promise<LayerComputing> => {
  const [expertSeconds, chunkSeconds, otherSeconds, copySeconds] = (await agree([
    own.expertSeconds,
    own.chunkSeconds,
    own.otherSeconds,
    separateBackward?.copySeconds ?? 0,
  ])) as [number, number, number, number];
  return {
    expertSeconds,
    chunkSeconds,
    otherSeconds,
    separateBackward: separateBackward && { ...separateBackward, copySeconds },
  };
};

/**
 * Returns the expert layer as dispatch methods see it: each shard of an expert counts as an expert, because a token is
 * sent to all shards of each expert that it chooses.
 */
const toShards = (layer: DispatchedLayer, numShards: number): DispatchedLayer => ({
  ...layer,
  numExperts: layer.numExperts * numShards,
  expertsPerToken: layer.expertsPerToken * numShards,
});

/** Measures the all-to-alls of the token exchange, for each level with several ranks. */
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

/** Plan of the dispatch, and the time model of the experts' all-to-all if the all-to-all was measured. */
export interface PlannedExperts {
  readonly plan: ExpertsPlan;
  readonly remark: string;
  readonly allToAll?: LinearCollectiveModel;
}

/**
 * Chooses the dispatch method of a job's experts and the number of chunks. The times of all choices are predicted from
 * the all-to-alls of each level and from compute times. The most promising choices and the flat method in one chunk are
 * measured with one layer on all ranks, and the fastest choice is used. All ranks use the measurements of rank 0. Must
 * be called on all ranks.
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

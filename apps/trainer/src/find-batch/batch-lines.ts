import type { Job } from "@skein/job/node";
import { bytesText, secondsText, textTable } from "@skein/report";
import { trialColumn } from "../command-line/trial-column.ts";
import { type BatchTrial, minGain } from "./choose-batch.ts";
import type { FoundBatch } from "./find-batch.ts";

/** Formats the trials as a table with one row per trial. */
export const batchTable = ({ tries, chosen }: Pick<FoundBatch, "tries" | "chosen">): string[] => {
  return textTable(
    [
      trialColumn("batch", true),
      trialColumn("memory, planned", true),
      trialColumn("time of a sample", true),
      trialColumn("", false),
    ],
    tries.map((one) => [
      `${one.batch}`,
      Number.isNaN(one.plannedBytes) ? "" : bytesText(one.plannedBytes),
      one.secondsPerSample === undefined ? "" : secondsText(one.secondsPerSample),
      one === chosen ? "chosen" : (one.refused ?? ""),
    ]),
    process.stdout.columns ?? 120,
  );
};

/** Rounds a number to three significant digits. */
const short = (value: number): number => Number(value.toPrecision(3));

/** Returns hints about settings that usually depend on the batch size, but that the search left unchanged. */
const hints = (job: Job, batch: number): string[] => {
  const times = batch / job.batch;
  if (times === 1) return [];
  const { peak } = job.learningRate;
  return [
    `learningRate.peak stays ${peak}: by the linear rule (Goyal et al. 2017, arXiv 1706.02677) ${short(times)} times the batch of ${job.batch} needs ${short(times * peak)}`,
    ...(job.steps === undefined ? [] : [`steps stay ${job.steps}, with ${short(times)} times as many samples`]),
  ];
};

const limitReason = (tries: readonly BatchTrial[], chosen: BatchTrial): string => {
  const larger = tries.filter(({ batch }) => batch > chosen.batch);
  const refused = larger[0]?.refused;
  if (larger.length === 0) return "there are no more samples";
  if (refused !== undefined) return `${larger[0]!.batch} does not fit (${refused})`;
  return `larger batches save less than ${100 * minGain} % of the time of a sample`;
};

/** Formats a line about the chosen batch size, the reason for the choice, and the settings that were not changed. */
export const chosenLine = ({ job, tries, bound }: FoundBatch, chosen: BatchTrial): string =>
  [
    `batch ${chosen.batch}: ${secondsText(chosen.secondsPerSample!)} a sample, ${bytesText(chosen.plannedBytes)} planned of ${bytesText(bound.bytes)}; ${limitReason(tries, chosen)}`,
    ...hints(job, chosen.batch),
  ].join("; ");

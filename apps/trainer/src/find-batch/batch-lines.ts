import { bytesText, secondsText, textTable } from "@skein/report";
import { tryColumn } from "../command-line/try-column.ts";
import type { Job } from "../job/job.ts";
import { type BatchTry, leastGain } from "./choose-batch.ts";
import type { FoundBatch } from "./find-batch.ts";

/** What the tries have shown, a row each. */
export const batchTable = ({ tries, chosen }: Pick<FoundBatch, "tries" | "chosen">): string[] => {
  return textTable(
    [
      tryColumn("batch", true),
      tryColumn("memory, planned", true),
      tryColumn("time of a sample", true),
      tryColumn("", false),
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

/** Three digits, and no zeros behind them. */
const short = (value: number): number => Number(value.toPrecision(3));

/** What else of a job a batch has a say in. Nothing of it is changed. */
const hints = (job: Job, batch: number): string[] => {
  const times = batch / job.batch;
  if (times === 1) return [];
  const { peak } = job.learningRate;
  return [
    `learningRate.peak stays ${peak}: by the linear rule (Goyal et al. 2017, arXiv 1706.02677) ${short(times)} times the batch of ${job.batch} wants ${short(times * peak)}`,
    ...(job.steps === undefined ? [] : [`steps stay ${job.steps}, of ${short(times)} times as many samples`]),
  ];
};

const whyNot = (tries: readonly BatchTry[], chosen: BatchTry): string => {
  const larger = tries.filter(({ batch }) => batch > chosen.batch);
  const refused = larger[0]?.refused;
  if (larger.length === 0) return "there are no more samples";
  if (refused !== undefined) return `${larger[0]!.batch} does not fit (${refused})`;
  return `larger ones save less than ${100 * leastGain} % of a sample's time`;
};

/** In one line which batch was chosen, why, and what stays as it was. */
export const chosenLine = ({ job, tries, bound }: FoundBatch, chosen: BatchTry): string =>
  [
    `batch ${chosen.batch}: ${secondsText(chosen.secondsPerSample!)} a sample, ${bytesText(chosen.plannedBytes)} planned of ${bytesText(bound.bytes)}; ${whyNot(tries, chosen)}`,
    ...hints(job, chosen.batch),
  ].join("; ");

import {
  type LogName,
  logNames,
  type PredictedLog,
  predictLog,
  type ReplayedLog,
  replayLog,
  trainingModels,
} from "../published/b-caffe-predictions.ts";
import { alignColumns } from "../report/align-columns.ts";
import { formatError, formatMilliseconds as ms } from "./format.ts";

/**
 * Summary of a log of a training iteration, in milliseconds: total backward time, total all-reduce time, end of the
 * last all-reduce, and exposed communication.
 */
type Summary = readonly [number, number, number, number];

/** Summary of each log, computed independently of this code. */
const replayed: Readonly<Record<LogName, Summary>> = {
  tmpcomm: [201.5, 166.8, 202.1, 0.5],
  tmp2comm: [200.3, 154, 200.7, 0.4],
  tmp8comm: [205.3, 310.7, 311.2, 105.9],
};

/**
 * Summaries of logs that are not in this repository, to test predictions. No parameter was fitted to these values, and
 * no modeling choice depended on them.
 */
const unseen: Readonly<Record<string, { readonly nodes: 4 | 8; readonly summary: Summary }>> = {
  tmp4comm: { nodes: 4, summary: [206.8, 261.5, 262, 55.2] },
  tmp4ocomm: { nodes: 4, summary: [202, 257.6, 258, 56.1] },
  tmp8ocomm: { nodes: 8, summary: [202.3, 319.4, 319.9, 117.6] },
};

const cellsOf = ({
  backwardSeconds,
  allReduceSeconds,
  finishSeconds,
  exposedSeconds,
}: ReplayedLog): readonly number[] => [backwardSeconds, allReduceSeconds, finishSeconds, exposedSeconds];

const header = (first: string): string[] => [first, "Σ backward", "Σ all-reduce", "finish", "exposed"];

const mergedRow = (log: string, { greedy, optimal }: PredictedLog): string[] => [
  log,
  ...[greedy, optimal].flatMap(({ numBuckets, allReduceSeconds, finishSeconds }) => [
    String(numBuckets),
    ms(allReduceSeconds),
    ms(finishSeconds),
  ]),
];

/** Returns the section that replays B-Caffe's logs, and predicts the logs that are not in this repository. */
export const bCaffeSection = (): string => {
  const models = trainingModels();
  const predictions = Object.entries(unseen).map(([log, { nodes, summary }]) => ({
    log,
    nodes,
    summary,
    prediction: predictLog(models[nodes]),
  }));
  const totalBytes = 53_516_544;
  const numLayers = 64;
  const bySteps =
    numLayers * models[4].startupSeconds + (totalBytes * (models[2].secondsPerByte + models[8].secondsPerByte)) / 2;
  return `## B-Caffe: GoogLeNet on K80 GPUs over 10 Gbit/s

Replayed (ms): measured times of the layers through the timeline of wait-free backpropagation, beside the summary.

${alignColumns([
  header("log"),
  ...logNames.map((log) => [
    log,
    ...cellsOf(replayLog(log)).map((value, i) => `${ms(value)} / ${replayed[log][i]!.toFixed(1)}`),
  ]),
])}

Within training an all-reduce of M bytes of a layer (weight and bias together) takes a + b · M:

${alignColumns([
  ["nodes", "a, µs", "b, ns/B", "from"],
  ...([2, 4, 8] as const).map((nodes) => [
    String(nodes),
    (1e6 * models[nodes].startupSeconds).toFixed(0),
    (1e9 * models[nodes].secondsPerByte).toFixed(3),
    nodes === 2
      ? "tmp2comm and tmpcomm, which is of 2 nodes by its times"
      : nodes === 8
        ? "both passes of tmp8comm"
        : "in between: a by log₂ P, b by (P − 1) / P",
  ]),
])}

The line is that of most layers; a and b are then scaled together until the layers add up to what was measured, since a log of one iteration holds some stragglers, wherever they strike. The benchmark of MPI was no help: within
training collectives take about twice as long as in it on 2 nodes, and a third longer on 8. How 4 nodes lie between 2 and 8 is theory, not fitted: a rank sends (P − 1) / P of the bytes each way. Were it log₂ P for b as for a,
the layers would add up to ${ms(bySteps)} ms on 4 nodes.

Logs that are not here (ms), predicted / as a summary of them says, to which nothing was fitted:

${alignColumns([
  [...header("log"), "error of the finish"],
  ...predictions.map(({ log, summary, prediction }) => [
    log,
    ...cellsOf(prediction).map((value, i) => `${ms(value)} / ${summary[i]!.toFixed(1)}`),
    formatError(prediction.finishSeconds / (1e-3 * summary[2]) - 1),
  ]),
])}

Merged, as the fitted link would have it: buckets, Σ merged all-reduces and finish (ms), by the published greedy rule and exactly. Whatever the plan, n buckets take n · a + M · b:
on 4 nodes ${ms(models[4].secondsPerByte * totalBytes)} ms + n · ${(1e3 * models[4].startupSeconds).toFixed(2)} ms, on 8 nodes ${ms(models[8].secondsPerByte * totalBytes)} ms + n · ${(1e3 * models[8].startupSeconds).toFixed(2)} ms. The overlapped runs had chosen theirs by a link of their own,
50 and 30 rows: ${ms(models[4].secondsPerByte * totalBytes + 50 * models[4].startupSeconds)} ms predicted beside 176.7 in the summary, and ${ms(models[8].secondsPerByte * totalBytes + 30 * models[8].startupSeconds)} beside 277.2.

${alignColumns([
  ["log", "buckets, greedy", "Σ merged", "finish", "buckets, exact", "Σ merged", "finish"],
  ...predictions.map(({ log, prediction }) => mergedRow(log, prediction)),
])}`;
};

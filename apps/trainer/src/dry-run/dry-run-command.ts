import { bytesText, digitsText, secondsText, shareText } from "@skein/report";
import { ratesLine } from "./doctor.ts";
import { exitCodes } from "../errors.ts";
import type { Job } from "../job/job.ts";
import { requireNoRun } from "../output-folder/output-folder.ts";
import type { RunOptions } from "../command-line/run-options.ts";
import { formatSeconds } from "../run-files/summary.ts";
import { type ForeseenRun, foreseeRun } from "./foresee-run.ts";
import { writeStdout } from "../console/terminal.ts";

const grouped = (count: number): string => count.toLocaleString("en");

const counted = (count: number, one: string): string => `${grouped(count)} ${one}${count === 1 ? "" : "s"}`;

const frozenText = ({ parameters, trainedParameters }: ForeseenRun): string =>
  trainedParameters === parameters ? "" : `, of which ${grouped(trainedParameters)} are trained`;

const sentText = ({ ranks, sentBytesPerStep: sent, denseBytesPerStep: dense }: ForeseenRun): string => {
  if (ranks === 1) return "nothing: there is one rank";
  return `${bytesText(sent)} per rank and step, ${shareText(sent / dense)} of a dense all-reduce of all gradients (${bytesText(dense)})`;
};

/** A bound: nothing of a step is faster, and what it does outside of its kernels is not in it. */
const stepText = ({ batch, ranks, prediction }: ForeseenRun): string => {
  const { computeSeconds, stepSeconds = computeSeconds, exposedSeconds = 0, unknown } = prediction;
  const bound = `at least ${secondsText(stepSeconds)}, at most ${digitsText(batch / stepSeconds)} samples/s`;
  if (unknown !== undefined) return `${bound}; ${unknown}`;
  return ranks === 1 ? bound : `${bound}; of that ${secondsText(exposedSeconds)} waiting for messages`;
};

const restsOn = ({ rates, ranks, prediction }: ForeseenRun): string =>
  [
    `rates of one rank alone, measured just now (${ratesLine(rates)})`,
    ...(ranks > 1 && prediction.unknown === undefined ? ["the measured links that the job names"] : []),
    "every kernel is taken to reach them, and nothing else to take time: small kernels, ranks that share memory and what a step does between kernels make it longer, twice in a CNN and tenfold where a step takes a tenth of a millisecond; skein-profile predict knows more of a machine that skein-profile calibrate has measured",
  ].join("; ");

/** What is foreseen, for people: a line per figure. */
export const formatForeseen = (run: ForeseenRun): string[] => {
  const { memory, steps, stepsPerEpoch } = run;
  const total = memory.parameters + memory.optimizer + memory.other + memory.intermediates;
  const rows: readonly (readonly [string, string])[] = [
    ["model", `${run.model}, ${counted(run.parameters, "parameter")}${frozenText(run)}`],
    [
      "samples",
      `${stepsPerEpoch === null ? "as many as come by" : grouped(run.trainSamples!)} to train on, ${grouped(run.judgedSamples)} to judge by`,
    ],
    [
      "length",
      `${counted(steps, "step")} of ${counted(run.batch, "sample")}${stepsPerEpoch === null ? "" : `, ${digitsText(steps / stepsPerEpoch)} epochs of ${counted(stepsPerEpoch, "step")}`}`,
    ],
    ["runs on", `${run.backend}, ${counted(run.ranks, "rank")}${run.ranks === 1 ? "" : ` by ${run.transport}`}`],
    ["memory of a rank", bytesText(total)],
    ["  parameters", bytesText(memory.parameters)],
    ["  optimizer", bytesText(memory.optimizer)],
    ...(memory.other === 0 ? [] : [["  other state", bytesText(memory.other)] as const]),
    [
      "  intermediates",
      `${bytesText(memory.intermediates)} at a time, as the step is planned; gradients, ${bytesText(memory.gradients)} of them in all, are among these`,
    ],
    ["sent", sentText(run)],
    ["a step", stepText(run)],
    [
      "the whole run",
      `at least ${formatSeconds(run.runSeconds)} for its steps; evaluations, checkpoints and the first step's compiling come on top`,
    ],
    ["rests on", restsOn(run)],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  return [...rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`), ...run.remarks];
};

/**
 * `skein-train run --dry-run`: say what is known before the first step. Writes nothing.
 *
 * @throws what a run throws before its first step.
 */
export const dryRun = async (
  job: Job,
  options: Pick<RunOptions, "json" | "output" | "resumeIfPossible">,
): Promise<number> => {
  if (options.output !== undefined && options.resumeIfPossible !== true) requireNoRun(options.output);
  const run = await foreseeRun(job);
  for (const line of options.json === true ? [JSON.stringify(run)] : formatForeseen(run)) writeStdout(`${line}\n`);
  return exitCodes.ok;
};

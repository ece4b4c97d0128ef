import { bytesText, digitsText, secondsText, shareText } from "@skein/report";
import { ratesLine } from "../doctor.ts";
import { exitCodes } from "../errors.ts";
import type { Job } from "../job.ts";
import { requireNoRun } from "../output-folder.ts";
import type { RunOptions } from "../run-options.ts";
import { formatSeconds } from "../summary.ts";
import { type ForeseenRun, foreseeRun } from "./foresee-run.ts";

const grouped = (count: number): string => count.toLocaleString("en");

const counted = (count: number, one: string): string => `${grouped(count)} ${one}${count === 1 ? "" : "s"}`;

const sentText = ({ ranks, sentBytesPerStep: sent, denseBytesPerStep: dense }: ForeseenRun): string => {
  if (ranks === 1) return "nothing: there is one rank";
  return `${bytesText(sent)} per rank and step, ${shareText(sent / dense)} of a dense all-reduce of all gradients (${bytesText(dense)})`;
};

const stepText = ({ batch, ranks, prediction }: ForeseenRun): string => {
  const { computeSeconds, stepSeconds, exposedSeconds = 0, unknown } = prediction;
  const speed = (seconds: number): string => `${digitsText(batch / seconds)} samples/s`;
  if (stepSeconds === undefined)
    return `at least ${secondsText(computeSeconds)}, at most ${speed(computeSeconds)}; ${unknown}`;
  return ranks === 1
    ? `${secondsText(stepSeconds)}, ${speed(stepSeconds)}`
    : `${secondsText(stepSeconds)}, ${speed(stepSeconds)}; of that ${secondsText(exposedSeconds)} waiting for messages`;
};

/** What is foreseen, for people: a line per figure. */
export const formatForeseen = (run: ForeseenRun): string[] => {
  const { memory, steps, stepsPerEpoch, prediction } = run;
  const total = memory.parameters + memory.optimizer + memory.other + memory.intermediates;
  const rows: readonly (readonly [string, string])[] = [
    ["model", `${run.model}, ${counted(run.parameters, "parameter")}`],
    ["samples", `${grouped(run.trainSamples)} to train on, ${grouped(run.judgedSamples)} to judge by`],
    [
      "length",
      `${counted(steps, "step")} of ${counted(run.batch, "sample")}, ${digitsText(steps / stepsPerEpoch)} epochs of ${counted(stepsPerEpoch, "step")}`,
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
      `${prediction.stepSeconds === undefined ? "at least " : ""}${formatSeconds(run.runSeconds)} for its steps; evaluations, checkpoints and the first step's compiling come on top`,
    ],
    [
      "rests on",
      `rates of one rank alone, measured just now (${ratesLine(run.rates)})${run.ranks > 1 && prediction.stepSeconds !== undefined ? ", and the measured links that the job names" : ""}; a step takes longer where its kernels are small or ranks share memory, up to twice as long so far; skein-profile predict knows more of a machine that skein-profile calibrate has measured`,
    ],
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
  for (const line of options.json === true ? [JSON.stringify(run)] : formatForeseen(run))
    process.stdout.write(`${line}\n`);
  return exitCodes.ok;
};

import { exitCodes, writeStdout } from "@skein/cli/node";
import type { Job } from "@skein/job/node";
import { bytesText, digitsText, secondsText, shareText } from "@skein/report";
import { formatSeconds } from "@skein/run-files/node";
import { ratesLine } from "./doctor.ts";
import { requireNoRun } from "../output-folder/output-folder.ts";
import type { RunOptions } from "../command-line/run-options.ts";
import { type RunForecast, forecastRun } from "./forecast-run.ts";

const grouped = (count: number): string => count.toLocaleString("en");

const countText = (count: number, one: string): string => `${grouped(count)} ${one}${count === 1 ? "" : "s"}`;

const frozenText = ({ parameters, trainedParameters }: RunForecast): string =>
  trainedParameters === parameters ? "" : `, of which ${grouped(trainedParameters)} are trained`;

const sentText = ({ ranks, sentBytesPerStep: sent, denseBytesPerStep: dense }: RunForecast): string => {
  if (ranks === 1) return "nothing: there is one rank";
  return `${bytesText(sent)} per rank and step, ${shareText(sent / dense)} of a dense all-reduce of all gradients (${bytesText(dense)})`;
};

/**
 * Formats the bounds on the step time and throughput. The step time is a lower bound, because time outside of kernels
 * is not included.
 */
const stepText = ({ batch, ranks, prediction }: RunForecast): string => {
  const { computeSeconds, stepSeconds = computeSeconds, exposedSeconds = 0, unknown } = prediction;
  const bound = `at least ${secondsText(stepSeconds)}, at most ${digitsText(batch / stepSeconds)} samples/s`;
  if (unknown !== undefined) return `${bound}; ${unknown}`;
  return ranks === 1 ? bound : `${bound}; of that ${secondsText(exposedSeconds)} for waiting on messages`;
};

const assumptions = ({ rates, ranks, prediction }: RunForecast): string =>
  [
    `rates of a single rank, measured just now (${ratesLine(rates)})`,
    ...(ranks > 1 && prediction.unknown === undefined ? ["the link measurements of the job"] : []),
    "all kernels are assumed to reach these rates, and only kernels and messages to take time: small kernels, ranks that share memory and work between kernels make a step longer, twice in a CNN and tenfold if a step takes a tenth of a millisecond; skein-profile predict is more accurate on a machine measured by skein-profile calibrate",
  ].join("; ");

/** Formats a forecast as lines for the user, one per value. */
export const formatForecast = (run: RunForecast): string[] => {
  const { memory, steps, stepsPerEpoch } = run;
  const total = memory.parameters + memory.optimizer + memory.other + memory.intermediates;
  const rows: readonly (readonly [string, string])[] = [
    ["model", `${run.model}, ${countText(run.parameters, "parameter")}${frozenText(run)}`],
    [
      "samples",
      `${stepsPerEpoch === null ? "an unknown number" : grouped(run.trainSamples!)} for training, ${grouped(run.judgedSamples)} for evaluation`,
    ],
    [
      "length",
      `${countText(steps, "step")} of ${countText(run.batch, "sample")}${stepsPerEpoch === null ? "" : `, ${digitsText(steps / stepsPerEpoch)} epochs of ${countText(stepsPerEpoch, "step")}`}`,
    ],
    ["runs on", `${run.backend}, ${countText(run.ranks, "rank")}${run.ranks === 1 ? "" : ` by ${run.transport}`}`],
    ["memory per rank", bytesText(total)],
    ["  parameters", bytesText(memory.parameters)],
    ["  optimizer", bytesText(memory.optimizer)],
    ...(memory.other === 0 ? [] : [["  other state", bytesText(memory.other)] as const]),
    [
      "  intermediates",
      `${bytesText(memory.intermediates)} at a time, by the plan of the step; includes gradients, ${bytesText(memory.gradients)} in total`,
    ],
    ["sent", sentText(run)],
    ["a step", stepText(run)],
    [
      "the whole run",
      `at least ${formatSeconds(run.runSeconds)} for its steps; without evaluations, checkpoints and the compilation in the first step`,
    ],
    ["assumptions", assumptions(run)],
  ];
  const width = Math.max(...rows.map(([name]) => name.length));
  return [...rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`), ...run.remarks];
};

/**
 * Implements `skein-train run --dry-run`: prints a forecast of the run without running a step. Writes no files.
 *
 * @throws errors of a run before its first step.
 */
export const dryRun = async (
  job: Job,
  options: Pick<RunOptions, "json" | "output" | "resumeIfPossible">,
): Promise<number> => {
  if (options.output !== undefined && options.resumeIfPossible !== true) requireNoRun(options.output);
  const run = await forecastRun(job);
  for (const line of options.json === true ? [JSON.stringify(run)] : formatForecast(run)) writeStdout(`${line}\n`);
  return exitCodes.ok;
};

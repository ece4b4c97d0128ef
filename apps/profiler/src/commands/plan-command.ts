import { secondsText, shareText } from "@skein/report";
import { type JobOptions, openJob, writeStdout } from "skein-train/profiling";
import { missedRunLines } from "../predict/calibration-lines.ts";
import { exitCodes } from "../errors.ts";
import { algorithmPrices } from "../plan/algorithm-prices.ts";
import { setOf } from "../predict/candidates.ts";
import { confirmBest } from "../plan/confirm-best.ts";
import { configurationLines, spaceLine, worldLines } from "../plan/plan-lines.ts";
import { type Keep, type PlannedWorld, planWorlds } from "../plan/plan-worlds.ts";
import { rankList } from "../plan/rank-list.ts";
import { requireNewJob, writeJob } from "../plan/write-job.ts";
import { groupsOn } from "../predict/groups-on.ts";
import { extrapolate, extrapolationLines } from "../predict/extrapolation.ts";
import { hardwareOf } from "../predict/hardware-of.ts";
import { predictStep } from "../predict/predict-step.ts";

export interface PlanCommandOptions extends Pick<JobOptions, "ranks" | "transport"> {
  readonly set?: readonly string[];
  readonly hardware: string;
  readonly keep?: Keep;
  readonly lossless?: boolean;
  readonly apply?: string;
  readonly json?: boolean;
}

/**
 * Implements `skein-profile plan`: finds the fastest configuration of a job on given hardware, and the best number of
 * ranks.
 */
export const planCommand = async (
  file: string,
  {
    hardware,
    ranks,
    keep = "rank-batch",
    lossless = false,
    json = false,
    apply,
    set = [],
    ...rest
  }: PlanCommandOptions,
): Promise<number> => {
  if (apply !== undefined) requireNewJob(file, apply);
  const machine = hardwareOf(hardware);
  const counts = ranks === undefined ? undefined : rankList(String(ranks));
  // A single number of ranks replaces the number in the job, with the batch unchanged. Several numbers of ranks are
  // compared with each other.
  const own = await openJob(file, { ...rest, set, ...(counts?.length === 1 && { ranks: String(counts[0]) }) });
  const several = counts !== undefined && counts.length > 1;
  const planned = await planWorlds(own, machine, { ranks: several ? counts : [own.facts.ranks], keep, lossless });
  const { worlds } = planned;
  const sampleCost = ({ epochSeconds, samplesPerSecond }: PlannedWorld): number =>
    Number.isFinite(epochSeconds) ? epochSeconds : 1 / samplesPerSecond;
  const fastest = worlds.reduce((a, b) => (sampleCost(b) < sampleCost(a) ? b : a));
  const ownSeconds = (await predictStep(own, machine)).simulated.stepSeconds;
  const { best, prediction } = await confirmBest(fastest.job, machine, fastest.scored);
  const bestSeconds = prediction.simulated.stepSeconds;
  const { samplesPerStep } = own.facts;
  if (apply !== undefined)
    writeJob(
      file,
      apply,
      { ...fastest.resizing, ...best.settings },
      `${secondsText(bestSeconds)} per step, simulated on ${machine.name}; ${secondsText(ownSeconds)} before`,
    );
  if (json) {
    const withoutJob = ({ job: _, ...world }: PlannedWorld): object => world;
    writeStdout(
      `${JSON.stringify({
        job: own.facts.name,
        hardware: machine.name,
        ownSeconds,
        keep,
        best: { ranks: fastest.ranks, ...best, tracedSeconds: bestSeconds },
        scored: fastest.scored,
        leftOut: [...planned.leftOut, ...fastest.leftOut],
        worlds: worlds.map(withoutJob),
        algorithms: algorithmPrices(prediction.program, groupsOn(fastest.job, machine)),
      })}\n`,
    );
    return exitCodes.ok;
  }
  const columns = process.stdout.columns ?? 80;
  const sets = setOf({ ...fastest.resizing, ...best.settings })
    .map((text) => `--set '${text}'`)
    .join(" ");
  const ownSamplesPerSecond = samplesPerStep / ownSeconds;
  const gain = several
    ? `${(fastest.job.facts.samplesPerStep / bestSeconds / ownSamplesPerSecond).toPrecision(3)} times its samples/s at best, on ${fastest.ranks} ranks`
    : `${secondsText(bestSeconds)} at best (${shareText(Math.max(0, 1 - bestSeconds / ownSeconds))} less)`;
  const outside = !several && own.facts.ranks > machine.topology.ranks;
  const lines = [
    `${own.facts.name} on ${machine.name}: ${secondsText(ownSeconds)} per step as it is, ${gain}`,
    spaceLine(worlds),
    ...(outside
      ? [
          `${machine.name} has ${machine.topology.ranks} ranks: the other ranks are assumed to be on more hosts of the same kind`,
        ]
      : []),
    ...(outside ? extrapolationLines(own.facts, machine, extrapolate(own.facts, machine, [])) : []),
    ...missedRunLines(machine.calibration?.runs ?? []),
    "",
    ...(several
      ? [...worldLines(worlds, keep, columns), ...planned.leftOut.map((line) => `left out: ${line}`), ""]
      : []),
    ...(several ? [`on ${fastest.ranks} ranks:`] : []),
    ...configurationLines(fastest, columns),
    "",
    `the fastest, traced as a whole step: ${secondsText(bestSeconds)}`,
    apply === undefined ? `to run it: ${sets}` : `written to ${apply}`,
  ];
  for (const line of lines) writeStdout(`${line}\n`);
  return exitCodes.ok;
};

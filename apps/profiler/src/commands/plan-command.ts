import { bytesText, secondsText, shareText, type TextColumn, textTable } from "@skein/report";
import { type JobOptions, openJob } from "skein-train/profiling";
import { exitCodes } from "../errors.ts";
import { setOf, type Settings } from "../plan/candidates.ts";
import { type OpenWith, type Scored, searchConfigurations } from "../plan/search.ts";
import { requireNewJob, writeJob } from "../plan/write-job.ts";
import { hardwareOf } from "../predict/hardware-of.ts";
import { planOn } from "../predict/plan-on.ts";
import { pricedStep, simulateStep } from "../predict/predict-step.ts";

export interface PlanCommandOptions extends Pick<JobOptions, "ranks" | "transport"> {
  readonly set?: readonly string[];
  readonly hardware: string;
  readonly lossless?: boolean;
  readonly apply?: string;
  readonly json?: boolean;
}

/** Rows that are shown. */
const mostRows = 15;

const columns: readonly TextColumn[] = [
  { heading: "step", numeric: true, cutAt: "end", least: 1, weight: 9 },
  { heading: "exposed", numeric: true, cutAt: "end", least: 1, weight: 5 },
  { heading: "sent", numeric: true, cutAt: "end", least: 1, weight: 4 },
  { heading: "compression", numeric: false, cutAt: "end", least: 10, weight: 8 },
  { heading: "overlap", numeric: false, cutAt: "end", least: 9, weight: 7 },
  { heading: "buckets", numeric: false, cutAt: "end", least: 10, weight: 6 },
];

/** `{kind: "top-k", density: 0.01}` → "top-k density 0.01". */
const words = (settings: unknown): string => {
  if (typeof settings !== "object" || settings === null) return String(settings);
  const { kind, ...rest } = settings as Settings;
  if (kind === "fixed-size") return rest["bytes"] === 2 ** 30 ? "one" : `of ${bytesText(rest["bytes"] as number)}`;
  return [String(kind), ...Object.entries(rest).map(([key, value]) => `${key} ${String(value)}`)].join(" ");
};

const rowOf = ({ settings, seconds, exposedSeconds, sentBytes }: Scored): string[] => [
  secondsText(seconds),
  secondsText(exposedSeconds),
  bytesText(sentBytes),
  words(settings["compression"]),
  words(settings["overlap"]),
  words(settings["buckets"]),
];

/** `skein-profile plan`: which configuration of a job is fastest on some hardware. */
export const planCommand = async (
  file: string,
  { hardware, lossless = false, json = false, apply, set = [], ...rest }: PlanCommandOptions,
): Promise<number> => {
  if (apply !== undefined) requireNewJob(file, apply);
  const machine = hardwareOf(hardware);
  const own = await openJob(file, { ...rest, set });
  const open: OpenWith = (settings) => own.with(setOf(settings));
  const ownSeconds = simulateStep(own, pricedStep(own, machine, await planOn(own, machine)), machine, { spans: false }).stepSeconds;
  const { scored, leftOut } = await searchConfigurations(open, machine, lossless);
  const [best] = scored as [Scored, ...Scored[]];
  if (apply !== undefined)
    writeJob(
      file,
      apply,
      best.settings,
      `${secondsText(best.seconds)} a step, as simulated on ${machine.name}; ${secondsText(ownSeconds)} before`,
    );
  if (json) {
    process.stdout.write(`${JSON.stringify({ job: own.facts.name, hardware: machine.name, ownSeconds, scored, leftOut })}\n`);
    return exitCodes.ok;
  }
  const sets = setOf(best.settings)
    .map((text) => `--set '${text}'`)
    .join(" ");
  const lines = [
    `${own.facts.name} on ${machine.name}: ${secondsText(ownSeconds)} a step as it is, ${secondsText(best.seconds)} at best (${shareText(Math.max(0, 1 - best.seconds / ownSeconds))} less)`,
    `${scored.length} configurations were simulated; those that compress are another training: see what it costs in accuracy before`,
    "",
    ...textTable(columns, scored.slice(0, mostRows).map(rowOf), process.stdout.columns ?? 80),
    ...(leftOut.length === 0 ? [] : ["", `left out, ${leftOut.length}:`, ...leftOut.slice(0, 5).map((line) => `  ${line}`)]),
    "",
    apply === undefined ? `to run the first: ${sets}` : `the first is in ${apply}`,
  ];
  for (const line of lines) process.stdout.write(`${line}\n`);
  return exitCodes.ok;
};

import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { parseArgs } from "node:util";
import { machine } from "../report/page.ts";
import { drawBeside } from "../report/write-plots.ts";
import { planSlowLinks, type SlowLinksRun } from "../slow-links/plan.ts";
import { readResults, resultOf, type Results } from "../studies/results-file.ts";
import type { JobFile } from "../studies/job-file.ts";
import { isMeant } from "../studies/run.ts";
import { resultsPath } from "../studies/study-options.ts";
import { calibrationJobs, calibrationNetwork } from "./calibration.ts";
import type { OwnStep } from "./own-step.ts";
import { ownStepsPage } from "./page.ts";
import { calibrate, predict, withLinksOf } from "./profiler.ts";

const usage = `Predict the steps that \`pnpm bench slow-links\` has measured on this machine, by a calibration over another network.

  pnpm bench own-steps [--only PATTERN,PATTERN] [--steps N] [--page FILE]

  --only   which of them; words with slashes between them must all begin a segment of a run's name
  --steps  of each job that is calibrated by; default: 20
  --page   where the page goes, with its plot beside it; default: docs/benchmarks/<date>-own-steps.md`;

const options = {
  only: { type: "string" },
  steps: { type: "string", default: "20" },
  page: { type: "string" },
  help: { type: "boolean", short: "h", default: false },
} as const;

const say = (line: string): void => void process.stderr.write(`${line}\n`);

const first = <T>(values: readonly T[]): T => values[0]!;

/** What buckets a run ends with follows from its own times. */
const isTriedOut = ({ job }: SlowLinksRun): boolean => (job["buckets"] as JobFile)["kind"] === "tuned";

/** Predict runs of one model and number of ranks. */
const predictRuns = async (runs: readonly SlowLinksRun[], steps: number): Promise<ReadonlyMap<SlowLinksRun, number>> => {
  const { jobs, files } = calibrationJobs(runs);
  say(`calibrating by ${jobs.length} jobs of ${first(runs).model.name} on ${first(runs).ranks} ranks …`);
  const calibrated = await calibrate(jobs, files, steps);
  const predicted = new Map<SlowLinksRun, number>();
  for (const ofNetwork of Map.groupBy(runs, ({ network }) => network).values()) {
    say(`measuring links of ${first(ofNetwork).network.title} …`);
    const hardware = await withLinksOf(first(ofNetwork), calibrated);
    for (const run of ofNetwork) {
      const { stepSeconds } = await predict(run, hardware);
      predicted.set(run, stepSeconds);
      say(`  ${run.name}: ${(1000 * stepSeconds).toFixed(1)} ms`);
    }
  }
  return predicted;
};

/** The command line of the page. @returns the exit code. */
export const ownSteps = async (args: readonly string[]): Promise<number> => {
  const { only, steps, page, help } = parseArgs({ args: [...args], options }).values;
  if (help) {
    console.log(usage);
    return 0;
  }
  const date = new Date().toISOString().slice(0, 10);
  const target = page ?? `docs/benchmarks/${date}-own-steps.md`;
  const resultsOf = (study: string): Results => readResults(resultsPath(study, false));
  const results = resultsOf("slow-links");
  const here = machine();
  const runs = planSlowLinks({ quick: false, seeds: [1], resultsOf }).filter(
    (run) => run.network !== calibrationNetwork && !isTriedOut(run) && run.lacks === undefined && isMeant(run, only?.split(",") ?? []),
  );
  const measured = runs.flatMap((run) => {
    const result = resultOf(results, run);
    return result?.outcome.kind === "done" && result.machine === here ? [{ run, measured: result.outcome.stepSeconds }] : [];
  });
  if (measured.length === 0) {
    console.error(`no run of ${resultsPath("slow-links", false)} was made on this machine (${here}); make some: pnpm bench slow-links`);
    return 2;
  }
  mkdirSync(dirname(target), { recursive: true });
  const began = performance.now();
  const own: OwnStep[] = [];
  for (const group of Map.groupBy(measured, ({ run }) => `${run.model.name} ${run.ranks}`).values()) {
    const predicted = await predictRuns(
      group.map(({ run }) => run),
      Number(steps),
    );
    own.push(...group.map((one): OwnStep => ({ ...one, predictedSeconds: predicted.get(one.run)! })));
  }
  const text = ownStepsPage(own, {
    date,
    command: [
      "pnpm bench own-steps",
      ...(only === undefined ? [] : [`--only ${only}`]),
      ...(steps === "20" ? [] : [`--steps ${steps}`]),
    ].join(" "),
    machine: here,
    seconds: (performance.now() - began) / 1000,
    draw: drawBeside(target),
  });
  writeFileSync(target, text);
  console.log(`wrote ${target}`);
  return 0;
};

import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { parseArgs } from "node:util";
import { machine } from "../report/page.ts";
import { addResult, appendResult, readResults, type Result, resultOf, type Results, stands, takesOf } from "./results-file.ts";
import { definitionOf, isMeant, type Run } from "./run.ts";
import { complaintOf, Interrupted, train } from "./trainer.ts";

/** How a result is asked for: that of a run as it is defined now. */
export type ResultOf = (run: Run) => Result | undefined;

/** Many training runs, compared on one page. */
export interface Study<Planned extends Run> {
  readonly name: string;
  readonly title: string;
  /** What is done in each run, in one line. */
  readonly about: string;
  /** @param quick a few steps of each: whether all of them run. */
  plan(options: { readonly quick: boolean; readonly seeds: readonly number[] }): readonly Planned[];
  /** What follows the head of the page. */
  page(runs: readonly Planned[], resultOf: ResultOf): string;
}

const usageOf = ({ name, about }: Study<Run>): string => `${about}

  pnpm bench ${name} [--only PATTERN,PATTERN] [--seeds 1,2] [--takes N] [--quick] [--again] [--results FILE] [--page FILE] [--list] [--check]

  --only     which runs; words with slashes between them must all begin a segment of a run's name
  --seeds    seeds of each run; default: 1
  --takes    how often each run is made, where times differ from one to the next: the page has medians of takes; default: 1
  --quick    a few steps of each: whether all of them run, nothing more
  --again    also runs that have a result
  --results  where results are added, and looked for: an interrupted study goes on. Default: runs/benchmarks/${name}.jsonl
  --page     the page with all results of the file. Default: docs/benchmarks/<date>-${name}.md; none with --quick
  --list     print names and what there is of each
  --check    let the trainer check every job, and run none`;

/** A line of progress. */
const said = ({ outcome }: Result): string => {
  if (outcome.kind !== "done") return `${outcome.kind}: ${outcome.reason}`;
  const { testAccuracy, bitsPerByte, stepSeconds } = outcome;
  const held = testAccuracy === undefined ? `${bitsPerByte!.toFixed(4)} bits per byte` : `${(100 * testAccuracy).toFixed(2)} % right`;
  return `${held}, ${(1000 * stepSeconds.median).toFixed(1)} ms per step`;
};

const writePage = <Planned extends Run>(
  study: Study<Planned>,
  path: string,
  command: string,
  runs: readonly Planned[],
  results: Results,
): void => {
  const lookUp: ResultOf = (run) => resultOf(results, run);
  const used = runs.flatMap((run) => lookUp(run) ?? []);
  const machines = [...new Set(used.map((result) => result.machine))].toSorted();
  const hours = used.reduce((sum, { seconds }) => sum + seconds, 0) / 3600;
  const days = [...new Set(used.map(({ at }) => at.slice(0, 10)))].toSorted();
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(
    path,
    `# ${study.title}, ${new Date().toISOString().slice(0, 10)}

Command: \`${command}\` (${used.length} of ${runs.length} runs, ${hours.toFixed(1)} h together, on ${days.join(" and ") || "no day"}).
Machine: ${machines.join("; ") || machine()}.

${study.page(runs, lookUp)}`,
  );
};

/** A study of the command line. @returns the exit code. */
export const runStudy = async <Planned extends Run>(study: Study<Planned>, args: readonly string[]): Promise<number> => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      only: { type: "string" },
      seeds: { type: "string", default: "1" },
      takes: { type: "string", default: "1" },
      quick: { type: "boolean", default: false },
      again: { type: "boolean", default: false },
      results: { type: "string" },
      page: { type: "string" },
      list: { type: "boolean", default: false },
      check: { type: "boolean", default: false },
      help: { type: "boolean", short: "h" },
    },
  });
  if (values.help) {
    console.log(usageOf(study));
    return 0;
  }
  const { quick } = values;
  const seeds = values.seeds.split(",").map(Number);
  if (seeds.some((seed) => !Number.isInteger(seed) || seed < 0)) {
    console.error(`--seeds ${values.seeds}: seeds are whole numbers from 0 with commas between them; use 1,2,3`);
    return 2;
  }
  const numTakes = Number(values.takes);
  if (!Number.isInteger(numTakes) || numTakes < 1) {
    console.error(`--takes ${values.takes}: how often each run is made is a whole number from 1; use 3`);
    return 2;
  }
  const path = values.results ?? `runs/benchmarks/${study.name}${quick ? "-quick" : ""}.jsonl`;
  const page = values.page ?? (quick ? undefined : `docs/benchmarks/${new Date().toISOString().slice(0, 10)}-${study.name}.md`);
  const runs = study.plan({ quick, seeds });
  const meant = runs.filter((run) => isMeant(run, values.only?.split(",") ?? []));
  if (meant.length === 0) {
    console.error(`--only ${values.only}: no run is meant by it; --list prints the names of all`);
    return 2;
  }
  const results = readResults(path);
  if (values.list) {
    for (const run of meant) {
      const result = resultOf(results, run);
      console.log(`${run.name}  ${result === undefined ? "–" : said(result)}`);
    }
    return 0;
  }
  if (values.check) {
    let numRefused = 0;
    for (const run of meant) {
      const complaint = await complaintOf(run);
      if (complaint !== undefined) numRefused++;
      console.log(`${run.name}  ${complaint ?? "valid"}`);
    }
    return numRefused === 0 ? 0 : 1;
  }
  const standing = (run: Planned): number => (values.again ? 0 : takesOf(results, run).filter(stands).length);
  // All runs once before any is made again: what disturbs the machine for a while then disturbs one take of each.
  const due = Array.from({ length: numTakes }, (_, take) =>
    meant.filter((run) => standing(run) <= take).map((run) => ({ run, take })),
  ).flat();
  const numMeant = meant.length * numTakes;
  if (due.length < numMeant) process.stderr.write(`${numMeant - due.length} of ${numMeant} runs have a result in ${path}\n`);
  const command = [
    `pnpm bench ${study.name}`,
    ...(values.seeds === "1" ? [] : ["--seeds", values.seeds]),
    ...(numTakes === 1 ? [] : ["--takes", values.takes]),
    ...(quick ? ["--quick"] : []),
  ];
  try {
    for (const [index, { run, take }] of due.entries()) {
      process.stderr.write(`${index + 1}/${due.length} ${run.name} …\n`);
      const began = performance.now();
      const outcome = await train(run);
      const definition = definitionOf(run);
      const seconds = (performance.now() - began) / 1000;
      const result: Result = {
        name: run.name,
        definition,
        ...(take > 0 && { take }),
        at: new Date().toISOString(),
        machine: machine(),
        seconds,
        job: run.job,
        outcome,
      };
      appendResult(path, result);
      addResult(results, result);
      process.stderr.write(`  ${said(result)} (${seconds.toFixed(0)} s)\n`);
      // After each run, so that an interrupted study leaves a page of what there is.
      if (page !== undefined) writePage(study, page, command.join(" "), runs, results);
    }
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
    process.stderr.write(`interrupted; the same command goes on, with what is in ${path}\n`);
    return 130;
  }
  if (page !== undefined) writePage(study, page, command.join(" "), runs, results);
  return 0;
};

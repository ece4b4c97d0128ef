import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { machine } from "../report/page.ts";
import { plotWriter } from "../report/write-plots.ts";
import { resultOf, type Results } from "./results-file.ts";
import type { Run } from "./run.ts";
import type { PlanOptions, ResultOf, Study } from "./study.ts";

/** Writes the page of a study with all results so far, and its plots next to the page. */
export const writeStudyPage = <Planned extends Run>(
  study: Study<Planned>,
  path: string,
  command: string,
  runs: readonly Planned[],
  results: Results,
  resultsOf: PlanOptions["resultsOf"],
): void => {
  const lookUp: ResultOf = (run) => resultOf(results, run);
  const used = runs.flatMap((run) => lookUp(run) ?? []);
  const all = (of: (result: (typeof used)[number]) => string): string[] => [...new Set(used.map(of))].toSorted();
  const hours = used.reduce((sum, { seconds }) => sum + seconds, 0) / 3600;
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(
    path,
    `# ${study.title}, ${new Date().toISOString().slice(0, 10)}

Command: \`${command}\` (${used.length} of ${runs.length} runs, ${hours.toFixed(1)} h together, on ${all(({ at }) => at.slice(0, 10)).join(" and ") || "no day"}).
Machine: ${all((result) => result.machine).join("; ") || machine()}.
Code: ${all(({ commit }) => commit).join(", ") || "none yet"}. Each run's job, seed, date and commit stand in the results file, a line each.

${study.page(runs, lookUp, plotWriter(path), resultsOf)}`,
  );
};

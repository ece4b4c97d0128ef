import type { Try } from "../convergence/tries.ts";
import { alignColumns } from "../report/align-columns.ts";
import type { ResultOf, Study } from "../studies/study.ts";
import { chooseSetting, planSearch, searchName, type SearchRun, validationFraction } from "./search-plan.ts";

const formatTry = ({ run, quality }: Try<SearchRun>, best: Try<SearchRun>): string => {
  const text =
    quality === undefined
      ? "diverged"
      : quality.unit === "%"
        ? `${quality.mean.toFixed(2)} %`
        : `${quality.mean.toFixed(3)} bits`;
  return `${run.setting.peak}: ${run === best.run ? `**${text}**` : text}`;
};

const page = (runs: readonly SearchRun[], resultOf: ResultOf): string => {
  const header = ["optimizer", "option", "rate: what came of it", "", "", "", "", "at an edge"];
  const sections = [...Map.groupBy(runs, ({ task }) => task)].map(([task, own]) => {
    const rows = [...Map.groupBy(own, ({ method }) => method).keys()].flatMap((method) => {
      const choice = chooseSetting(task, method, false, resultOf);
      if (choice === undefined) return [[method.name, "tries are missing", ...Array<string>(6).fill("")]];
      const { best, tries } = choice;
      const byRate = tries.toSorted((a, b) => a.run.setting.peak - b.run.setting.peak);
      return [...Map.groupBy(byRate, ({ run }) => run.setting.second)].map(([second, few]) => [
        method.name,
        `${method.second.option} ${second}`,
        ...Array.from({ length: 5 }, (_, i) => (few[i] === undefined ? "" : formatTry(few[i], best))),
        [few[0], few.at(-1)].includes(best) ? "yes" : "",
      ]);
    });
    return `## ${task.title}, ${task.searchSteps} steps\n\n${alignColumns([header, ...rows])}`;
  });
  return `Every optimizer has the same budget: eight tries, of one seed that none is judged with later. First three learning rates by two values of one
other option; then two more rates with the better value: on both sides of the best so far, or, where that lies at an edge, beyond it. Each is
trained without ${100 * validationFraction} % of the training samples, which are held back, and judged by these; the test samples take no part. The best, in bold, is what
\`pnpm bench second-order\` trains with. Middles of the rates depend on task and optimizer alone; what is not named has the trainer's default.

${sections.join("\n\n")}
`;
};

/** Study that chooses the learning rate and the second searched option of each optimizer. */
export const secondOrderSearch: Study<SearchRun> = {
  name: searchName,
  title: "Settings of second-order optimizers, sought on validation samples",
  about: "Train each task with each optimizer at eight settings, and judge by samples held back from training.",
  seeds: 1,
  takes: 1,
  maxSeeds: 1,
  isAdaptive: true,
  plan: planSearch,
  page,
};

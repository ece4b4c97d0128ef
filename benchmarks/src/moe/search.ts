import { alignColumns } from "../report/align-columns.ts";
import type { ResultOf, Study } from "../studies/study.ts";
import { chooseRate, planSearch, searchName, type SearchRun, validationFraction } from "./search-plan.ts";

const page = (runs: readonly SearchRun[], resultOf: ResultOf): string => {
  const peaks = [...new Set(runs.map(({ peak }) => peak))];
  const rows = [...new Set(runs.map(({ contestant }) => contestant))].map((contestant) => {
    const choice = chooseRate(contestant, false, resultOf);
    if (choice === undefined) return [contestant.name, "tries are missing", ...peaks.slice(1).map(() => "")];
    return [
      contestant.name,
      ...choice.tries.map((one) => {
        const text = one.quality === undefined ? "diverged" : `${one.quality.mean.toFixed(3)} bits`;
        return one === choice.best ? `**${text}**` : text;
      }),
    ];
  });
  return `Every contestant has the same budget: three learning rates, of one seed that none is judged with later. Each is trained without the last
${100 * validationFraction} % of the training samples and judged by these; the test samples take no part. The best, in bold, is what
\`pnpm bench moe-quality\` trains with.

${alignColumns([["model", ...peaks.map((peak) => `rate ${peak}`)], ...rows])}
`;
};

/** Study that chooses the learning rate of each mixture of experts, and of the dense model. */
export const moeSearch: Study<SearchRun> = {
  name: searchName,
  title: "Learning rates of mixtures of experts, sought on validation samples",
  about:
    "Train a GPT, dense and with each gate, at three learning rates, and judge by samples held back from training.",
  seeds: 1,
  takes: 1,
  maxSeeds: 1,
  plan: planSearch,
  page,
};

import { alignColumns } from "../report/align-columns.ts";
import type { ResultOf, Study } from "../studies/study.ts";
import { searchSamples, validationFraction } from "./contestants.ts";
import { chooseSetting, planSearch, searchName, type SearchRun } from "./search-plan.ts";

const page = (runs: readonly SearchRun[], resultOf: ResultOf): string => {
  const header = ["training", "rate", "coefficient", "warm-up", "weight decay", "label smoothing", "momentum", "right"];
  const rows = [...new Set(runs.map(({ contestant }) => contestant))].flatMap((contestant) => {
    const choice = chooseSetting(contestant, false, resultOf);
    if (choice === undefined) return [[contestant.name, "tries are missing", ...Array<string>(6).fill("")]];
    return choice.tries.map((one) => {
      const { peak, coefficient, warmupShare, weightDecay, labelSmoothing, decay } = one.run.setting;
      const text = one.quality === undefined ? "diverged" : `${one.quality.mean.toFixed(2)} %`;
      return [
        contestant.name,
        ...[peak, coefficient ?? "", warmupShare, weightDecay, labelSmoothing, decay].map(String),
        one === choice.best ? `**${text}**` : text,
      ];
    });
  });
  return `Of each way to train, first learning rates are tried, then changes to the best of them, one at a time: of large batches no label
smoothing and ten times the weight decay, of LARS also a longer warm-up and more momentum. Small batches are what others are held against: of
them rates alone are tried. One seed, that none is judged with later. Each is trained on
${searchSamples} pictures and judged by ${60_000 * validationFraction} others that are held back; the test samples take no part. The best, in bold, is what
\`pnpm bench large-batch\` trains with. Warm-up is a share of all steps.

${alignColumns([header, ...rows])}
`;
};

/** Study that chooses the settings of small and large batches. */
export const largeBatchSearch: Study<SearchRun> = {
  name: searchName,
  title: "Settings of small and large batches, sought on validation samples",
  about:
    "Train a ResNet-18 on Fashion-MNIST in small and in large batches at several settings, and judge by samples held back.",
  seeds: 1,
  takes: 1,
  maxSeeds: 1,
  isAdaptive: true,
  plan: planSearch,
  page,
};

import { alignColumns } from "../report/align-columns.ts";
import type { ResultOf } from "../studies/study.ts";
import { type Choice, chooseRate } from "./choice.ts";
import { factors, type SearchRun, validationFraction } from "./search-plan.ts";

const formatTry = ({ run, quality }: Choice["tries"][number], chosen: number): string => {
  if (quality === undefined) return "diverged";
  const text = quality.unit === "%" ? quality.mean.toFixed(2) : quality.mean.toFixed(3);
  return run.factor === chosen ? `**${text}**` : text;
};

/** Returns a page with a table per model that shows every search run of every setting, and the chosen rate. */
export const searchPage = (runs: readonly SearchRun[], resultOf: ResultOf): string => {
  const header = [
    "compression",
    "rates tried",
    ...factors.map((factor) => `× ${Number(factor.toPrecision(2))}`),
    "chosen",
    "note",
  ];
  const rowOf = ({ model, setting }: SearchRun): string[] => {
    const choice = chooseRate(model, setting, false, resultOf);
    if (choice === undefined) return [setting.name, "–", ...factors.map(() => "–"), "–", "tries are missing"];
    const { tries, factor, atEdge } = choice;
    const chosen = tries.find(({ run }) => run.factor === factor)!;
    const note = chosen.quality === undefined ? "every try diverged" : atEdge ? "at the edge of what was tried" : "";
    return [
      setting.name,
      tries.map(({ peak }) => peak).join(", "),
      ...tries.map((one) => formatTry(one, factor)),
      `${chosen.peak}`,
      note,
    ];
  };
  const tables = [...Map.groupBy(runs, ({ model }) => model)].map(([model, own]) => {
    const firsts = [...Map.groupBy(own, ({ setting }) => setting.name).values()].map((tries) => tries[0]!);
    return `## ${model.title}\n\n${alignColumns([header, ...firsts.map(rowOf)])}\n`;
  });
  return `Every setting of a model, dense ones included, has the same budget: ${factors.length} tries, one seed each, that no setting is judged with later. The middle of the learning rates
depends on model and optimizer alone. A try is trained without ${100 * validationFraction} % of the training samples, which are held back, and judged by these (right answers in %, or bits per
byte); the test samples take no part. The best is chosen, in bold, the lower rate of equals. The other options of a method (density, warm-up, rank) are
not sought: they stand in \`benchmarks/src/convergence/settings.ts\`.

${tables.join("\n")}`;
};

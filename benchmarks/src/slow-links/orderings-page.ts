import { alignColumns } from "../report/align-columns.ts";
import type { Outcome } from "../studies/outcome.ts";
import { type Ordering, orderings } from "./orderings.ts";
import type { SlowLinksRun } from "./plan.ts";

/** Closer than this, or than what both medians waver by, is no difference. */
const leastDifference = 0.03;

type Verdict = "holds" | "even" | "does not";

interface Comparison {
  readonly run: SlowLinksRun;
  /** How many times as fast the method is that should be faster. */
  readonly ratio: number;
  readonly verdict: Verdict;
}

const compare = (run: SlowLinksRun, faster: Outcome | undefined, slower: Outcome | undefined): Comparison | undefined => {
  if (faster?.kind !== "done" || slower?.kind !== "done") return undefined;
  const [quick, slow] = [faster.stepSeconds, slower.stepSeconds];
  const ratio = slow.median / quick.median;
  const wavering = Math.max(leastDifference, quick.mad / quick.median + slow.mad / slow.median);
  return { run, ratio, verdict: ratio > 1 + wavering ? "holds" : ratio < 1 / (1 + wavering) ? "does not" : "even" };
};

const marks: Readonly<Record<Verdict, string>> = { holds: "", even: " =", "does not": " ✗" };

/** What the papers say of each pair of methods, beside what was measured: a column per network and number of ranks, in it a ratio per model. */
export const orderingsTable = (runs: readonly SlowLinksRun[], outcomeOf: (run: SlowLinksRun) => Outcome | undefined): string => {
  const places = [...Map.groupBy(runs, ({ network, ranks }) => `${network.title}, ${ranks} ranks`)];
  const comparisonsOf = ({ faster, slower }: Ordering, own: readonly SlowLinksRun[]): Comparison[] =>
    own
      .filter(({ method }) => method.name === faster)
      .flatMap((run) => {
        const other = own.find(({ method, model }) => method.name === slower && model === run.model);
        return (other && compare(run, outcomeOf(run), outcomeOf(other))) ?? [];
      });
  const rows = orderings.flatMap((ordering) => {
    const cells = places.map(([, own]) => comparisonsOf(ordering, own));
    const all = cells.flat();
    if (all.length === 0) return [];
    const count = (wanted: Verdict): number => all.filter(({ verdict }) => verdict === wanted).length;
    return [
      [
        ordering.claim,
        `${ordering.faster} / ${ordering.slower}`,
        ...cells.map((own) => own.map(({ ratio, verdict }) => `${ratio.toFixed(2)}${marks[verdict]}`).join(", ") || "–"),
        `${count("holds")} / ${count("even")} / ${count("does not")}`,
        ordering.source,
      ],
    ];
  });
  return alignColumns([["claim", "methods", ...places.map(([title]) => title), "holds / even / does not", "source"], ...rows]);
};

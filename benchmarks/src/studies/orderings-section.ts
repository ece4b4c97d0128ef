import { median } from "@skein/measuring";
import { alignColumns } from "../report/align-columns.ts";
import type { RangePlot } from "../report/range-plot.ts";
import type { Outcome } from "./outcome.ts";
import type { Run } from "./run.ts";
import type { Draw } from "./study.ts";

/** A paper's claim that one method is faster than another. */
export interface Ordering {
  readonly claim: string;
  readonly source: string;
  /** Names of the methods that the claim compares. */
  readonly faster: string;
  readonly slower: string;
  /** Present if the paper claims only that the method `faster` is not slower. Equal times then support the claim. */
  readonly orEven?: true;
}

/** Run of a method with a model over a network on several ranks. */
export interface PlacedRun extends Run {
  readonly network: { readonly title: string };
  readonly ranks: number;
  readonly model: { readonly name: string };
  readonly method: { readonly name: string };
}

/** Runs, results and claims to compare. */
export interface JudgedRuns<Placed extends PlacedRun> {
  readonly runs: readonly Placed[];
  readonly outcomeOf: (run: Placed) => Outcome | undefined;
  readonly orderings: readonly Ordering[];
  /** Whether claims may use comparisons with a run. Default: claims use all comparisons. */
  readonly isClaimed?: (run: Placed) => boolean;
}

/** Text for pages that states when measurements support a claimed ordering of two methods. */
export const orderingRule =
  "An ordering holds where the first is faster by more than 3 % and by more than both medians\nwaver (the sum of their median absolute deviations); = stands where neither is faster by so much, ✗ where the second is.";

/**
 * Minimum relative difference of times that are not considered equal. If the sum of the relative deviations of both
 * runs is larger, this sum is used.
 */
const minDifference = 0.03;

type Verdict = "holds" | "even" | "does not";

interface Comparison {
  /** Whether claims depend on the comparison. True if claims depend on the runs of both methods. */
  readonly counts: boolean;
  /** Median time of the method claimed to be slower / median time of the method claimed to be faster. */
  readonly ratio: number;
  readonly verdict: Verdict;
}

/**
 * Compares the step times of two outcomes. Undefined unless both runs are done.
 *
 * @param counts Whether claims may use the comparison.
 */
const compare = (counts: boolean, faster: Outcome | undefined, slower: Outcome | undefined): Comparison | undefined => {
  if (faster?.kind !== "done" || slower?.kind !== "done") return undefined;
  const [quick, slow] = [faster.stepSeconds, slower.stepSeconds];
  const ratio = slow.median / quick.median;
  const relativeDeviation = Math.max(minDifference, quick.mad / quick.median + slow.mad / slow.median);
  return {
    counts,
    ratio,
    verdict: ratio > 1 + relativeDeviation ? "holds" : ratio < 1 / (1 + relativeDeviation) ? "does not" : "even",
  };
};

const marks: Readonly<Record<Verdict, string>> = { holds: "", even: " =", "does not": " ✗" };

/**
 * A claimed ordering of two methods, with its comparisons. `places` lists the comparisons by network and number of
 * ranks; `counted` lists the comparisons on which claims depend.
 */
interface Measured {
  readonly ordering: Ordering;
  readonly places: readonly (readonly Comparison[])[];
  readonly counted: readonly Comparison[];
}

const placesOf = <Placed extends PlacedRun>(runs: readonly Placed[]): Map<string, Placed[]> =>
  Map.groupBy(runs, ({ network, ranks }) => `${network.title}, ${ranks} ranks`);

/** Compares the runs of each claimed ordering. Orderings without a comparison are omitted. */
const measure = <Placed extends PlacedRun>({
  runs,
  outcomeOf,
  orderings,
  isClaimed = () => true,
}: JudgedRuns<Placed>): Measured[] => {
  const comparisonsOf = ({ faster, slower }: Ordering, own: readonly Placed[]): Comparison[] =>
    own
      .filter(({ method }) => method.name === faster)
      .flatMap((run) => {
        const other = own.find(({ method, model }) => method.name === slower && model === run.model);
        return (other && compare([run, other].every(isClaimed), outcomeOf(run), outcomeOf(other))) ?? [];
      });
  return orderings.flatMap((ordering) => {
    const places = [...placesOf(runs).values()].map((own) => comparisonsOf(ordering, own));
    const all = places.flat();
    return all.length === 0 ? [] : [{ ordering, places, counted: all.filter(({ counts }) => counts) }];
  });
};

const countOf = (comparisons: readonly Comparison[], wanted: Verdict): number =>
  comparisons.filter(({ verdict }) => verdict === wanted).length;

const tableOf = (measured: readonly Measured[], titles: readonly string[]): string => {
  const rows = measured.map(({ ordering, places, counted }) => [
    ordering.claim,
    `${ordering.faster} / ${ordering.slower}`,
    ...places.map(
      (own) =>
        own
          .map(({ ratio, verdict, counts }) => `${ratio.toFixed(2)}${marks[verdict]}${counts ? "" : "°"}`)
          .join(", ") || "–",
    ),
    (["holds", "even", "does not"] as const).map((wanted) => countOf(counted, wanted)).join(" / "),
    ordering.source,
  ]);
  return alignColumns([["claim", "methods", ...titles, "holds / even / does not", "source"], ...rows]);
};

/** Returns the number of comparisons that support a claim, including equal times if the claim allows equal times. */
const numFor = ({ ordering, counted }: Measured): number =>
  countOf(counted, "holds") + (ordering.orEven === true ? countOf(counted, "even") : 0);

const sentencesOf = (measured: readonly Measured[]): readonly [string, string, string] => {
  const counted = measured.flatMap((one) => one.counted);
  const numLeftOut = measured.flatMap(({ places }) => places.flat()).length - counted.length;
  const judged = measured.filter((one) => one.counted.length > 0);
  const against = judged.filter((one) => countOf(one.counted, "does not") > numFor(one));
  const firm = judged.filter((one) => countOf(one.counted, "does not") === 0 && numFor(one) > 0);
  const names = (some: readonly Measured[]): string => some.map(({ ordering }) => ordering.claim).join("; ") || "none";
  return [
    `Of ${counted.length} comparisons ${countOf(counted, "holds")} hold, ${countOf(counted, "even")} are even and ${countOf(counted, "does not")} go the other way${numLeftOut === 0 ? "" : `; ${numLeftOut} more are left out, since a method in them does not hold its margin`}.`,
    `Claims that hold somewhere and are contradicted nowhere: ${names(firm)}.`,
    `Claims that are contradicted more often than they hold: ${names(against)}.`,
  ];
};

const plotOf = (measured: readonly Measured[]): RangePlot => ({
  name: "orderings",
  title: "What the papers say, beside what was measured",
  axis: "how many times as fast the first method is as the second",
  scale: "log",
  reference: 1,
  legend:
    "marks: medians over networks, ranks and models, lines: least to greatest; filled where at least one comparison counts",
  rows: measured.map(({ ordering, places, counted }) => {
    const ratios = (counted.length > 0 ? counted : places.flat()).map(({ ratio }) => ratio);
    return {
      label: `${ordering.faster} / ${ordering.slower}`,
      value: median(ratios),
      low: Math.min(...ratios),
      high: Math.max(...ratios),
      solid: counted.length > 0,
      note: `${countOf(counted, "holds")} of ${counted.length} hold`,
    };
  }),
});

/**
 * Returns a section that compares the papers' claims with measurements: one row per pair of methods, a column per
 * network and number of ranks, and in each cell a time ratio per model.
 */
export const orderingsSection = <Placed extends PlacedRun>(judged: JudgedRuns<Placed>, draw: Draw): string => {
  const measured = measure(judged);
  if (measured.length === 0) return "No pair was run yet.";
  return [
    draw(plotOf(measured)),
    sentencesOf(measured).join("\n"),
    tableOf(measured, [...placesOf(judged.runs).keys()]),
  ].join("\n\n");
};

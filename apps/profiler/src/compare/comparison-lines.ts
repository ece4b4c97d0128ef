import {
  type OperatorRow,
  outsideNames,
  type ProfileReport,
  secondsText,
  shareText,
  type TextColumn,
  textTable,
} from "@skein/report";
import { type Difference, differenceOf, significant } from "./difference.ts";

interface Row extends Difference {
  readonly name: string;
  /** Change of the step time due to this operator, in seconds. */
  readonly seconds: number;
}

const keyOf = ({ operator, scope, phase }: OperatorRow): string => `${operator} ${scope} (${phase})`;

const nothing = { median: 0, mad: 0, n: 1 };

/**
 * Returns the operator rows of both reports. If only one report has a row, the time in the other report counts as 0,
 * and the p-value of the difference is 0.
 */
const rowsOf = (before: ProfileReport, after: ProfileReport): Row[] => {
  const timesOf = (report: ProfileReport): ReadonlyMap<string, OperatorRow["seconds"]> =>
    new Map([
      ...report.operators.map((row) => [keyOf(row), row.seconds] as const),
      ...report.outside.flatMap(({ kind, seconds }) =>
        kind === "waiting" ? [] : [[outsideNames[kind], seconds] as const],
      ),
      ...report.collectives.map((row) => [`waiting for ${row.name}`, row.exposedSeconds] as const),
    ]);
  const [one, other] = [timesOf(before), timesOf(after)];
  return [...new Set([...one.keys(), ...other.keys()])].map((name) => {
    const difference = differenceOf(one.get(name) ?? nothing, other.get(name) ?? nothing);
    const probability = one.has(name) && other.has(name) ? difference.probability : 0;
    return { name, ...difference, probability, seconds: difference.after.median - difference.before.median };
  });
};

const signed = (relative: number): string =>
  relative === 0
    ? "0 %"
    : Number.isFinite(relative)
      ? `${relative > 0 ? "+" : "−"}${shareText(Math.abs(relative))}`
      : "new";

/** Maximum number of rows to print. */
const maxRows = 20;

const columns: readonly TextColumn[] = [
  { heading: "operator", numeric: false, cutAt: "middle", least: 16, weight: 9 },
  { heading: "before", numeric: true, cutAt: "end", least: 1, weight: 6 },
  { heading: "after", numeric: true, cutAt: "end", least: 1, weight: 7 },
  { heading: "change", numeric: true, cutAt: "end", least: 1, weight: 8 },
];

/**
 * Returns a warning for each property, such as the machine, in which the reports differ, because differing properties
 * make reports hard to compare.
 */
const cautions = (before: ProfileReport, after: ProfileReport): string[] =>
  (["machine", "backend", "ranks", "samplesPerStep"] as const).flatMap((key) =>
    before[key] === after[key] ? [] : [`${key} differs: ${before[key]} and ${after[key]}`],
  );

/**
 * Formats a comparison of two reports for a terminal. Only significant differences are listed, largest change of the
 * step time first.
 */
export const comparisonLines = (before: ProfileReport, after: ProfileReport, width = 80): string[] => {
  const step = differenceOf(before.step, after.step);
  const rows = rowsOf(before, after);
  const isSignificant = significant(rows.map(({ probability }) => probability));
  const changed = rows.filter((_, i) => isSignificant[i]).toSorted((a, b) => Math.abs(b.seconds) - Math.abs(a.seconds));
  const verdict =
    step.probability <= 0.05
      ? signed(step.relative)
      : before.step.n < 2 || after.step.n < 2
        ? `${signed(step.relative)}; with one step, this may be chance`
        : `${signed(step.relative)}, which may be chance (p = ${step.probability.toPrecision(2)})`;
  return [
    `step ${secondsText(before.step.median)} → ${secondsText(after.step.median)}: ${verdict}`,
    ...cautions(before, after),
    "",
    changed.length === 0
      ? `none of ${rows.length} operators and waits differs by more than chance between steps`
      : `${changed.length} of ${rows.length} operators and waits differ by more than chance between steps`,
    ...(changed.length === 0 ? [] : ["(at most 5 % probability that any of them is chance: Holm's rule)"]),
    "one run of each does not show how runs vary: repeat both",
    ...(changed.length === 0
      ? []
      : textTable(
          columns,
          changed
            .slice(0, maxRows)
            .map(({ name, before: one, after: other, relative }) => [
              name,
              secondsText(one.median),
              secondsText(other.median),
              signed(relative),
            ]),
          width,
        )),
    ...(changed.length > maxRows ? [`and ${changed.length - maxRows} more with smaller changes`] : []),
  ];
};

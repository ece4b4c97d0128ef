import type { CollectiveRow, OperatorRow, OutsideRow, ProfileReport, RowPhase } from "../profile-report.ts";
import { bytesText, digitsText } from "../quantities.ts";
import { outsideMeanings, outsideNames } from "../phases.ts";
import { type Column, type Row, sortableTable } from "./table.ts";

const text = (heading: string, meaning?: string): Column => ({
  heading,
  numeric: false,
  ...(meaning !== undefined && { meaning }),
});
const number = (heading: string, meaning?: string): Column => ({
  heading,
  numeric: true,
  ...(meaning !== undefined && { meaning }),
});

const operatorColumns: readonly Column[] = [
  text("operator"),
  text("scope", "part of the model"),
  text("phase"),
  number("calls", "in one step"),
  number("ms", "all calls in a step, on the slowest rank: median"),
  number("± ms", "median absolute deviation from the median"),
  number("% of step", "share of the time of all ranks; all rows add up to 100"),
  number("GFLOP/s"),
  number("GB/s", "read and written"),
  number("% of roof", "roofline time divided by measured time"),
  number("predicted ms", "by the cost model"),
  text("bound by", "limit of the roofline: arithmetic or memory"),
];

const rate = (amount: number | undefined, seconds: number): number | undefined =>
  amount !== undefined && amount > 0 && seconds > 0 ? amount / seconds / 1e9 : undefined;

const operatorCells = ({
  operator,
  scope,
  phase,
  calls,
  seconds,
  share,
  flops,
  bytes,
  rooflineSeconds,
  predictedSeconds,
  boundBy,
}: OperatorRow): string[] => [
  operator,
  scope,
  phase,
  String(calls),
  digitsText(1e3 * seconds.median),
  digitsText(1e3 * seconds.mad),
  digitsText(100 * share),
  digitsText(rate(flops, seconds.median)),
  digitsText(rate(bytes, seconds.median)),
  digitsText(
    rooflineSeconds === undefined || !(seconds.median > 0) ? undefined : (100 * rooflineSeconds) / seconds.median,
  ),
  digitsText(predictedSeconds === undefined ? undefined : 1e3 * predictedSeconds),
  boundBy ?? "–",
];

const outsideRow = ({ kind, seconds, share }: OutsideRow): Row => ({
  cells: [
    outsideNames[kind],
    "–",
    "outside",
    "–",
    digitsText(1e3 * seconds.median),
    digitsText(1e3 * seconds.mad),
    digitsText(100 * share),
    ...operatorColumns.slice(7).map(() => "–"),
  ],
  data: { phase: "outside", tip: outsideMeanings[kind] },
  className: "outside",
});

const phases: readonly RowPhase[] = ["forward", "backward", "update", "communication", "other"];

export const operatorSection = ({ operators, outside }: ProfileReport): string => {
  const visible = outside.filter(({ share }) => share > 0);
  const present = phases.filter((phase) => operators.some((row) => row.phase === phase));
  const options = [...present, ...(visible.length > 0 ? ["outside"] : [])].map(
    (phase) => `<option value="${phase}">${phase}</option>`,
  );
  return `<section aria-labelledby="operators-heading"><h2 id="operators-heading">Operators</h2>
<div class="filters scripted" role="search"><label>Words <input type="search" data-filters="operators" placeholder="matmul block-0"></label><label>Phase <select name="phase" data-filters="operators"><option value="">all</option>${options.join(
    "",
  )}</select></label><output data-counts="operators"></output></div>
${sortableTable("operators", "Operators of a step, by scope and phase, and time outside operators", operatorColumns, [
  ...operators.map((row) => ({ cells: operatorCells(row), data: { phase: row.phase } })),
  ...visible.map(outsideRow),
])}</section>`;
};

const collectiveColumns: readonly Column[] = [
  text("collective"),
  text("kind"),
  text("axis", "of the mesh"),
  text("algorithm"),
  number("KiB", "size of a rank's operand"),
  number("ms", "from start until the result is available: median"),
  number("± ms"),
  number("exposed ms", "longest wait of a rank: median"),
  number("predicted ms", "by the cost model"),
];

const collectiveCells = ({
  name,
  kind,
  axis,
  algorithm,
  bytes,
  seconds,
  exposedSeconds,
  predictedSeconds,
}: CollectiveRow): string[] => [
  name,
  kind,
  axis,
  algorithm ?? "–",
  digitsText(bytes / 1024),
  digitsText(1e3 * seconds.median),
  digitsText(1e3 * seconds.mad),
  digitsText(1e3 * exposedSeconds.median),
  digitsText(predictedSeconds === undefined ? undefined : 1e3 * predictedSeconds),
];

export const collectiveSection = ({ collectives }: ProfileReport): string =>
  `<section aria-labelledby="collectives-heading"><h2 id="collectives-heading">Collectives</h2>
${
  collectives.length === 0
    ? '<p class="quiet">None: the ranks of this job do not communicate.</p>'
    : sortableTable(
        "collectives",
        `Collectives of a step: ${collectives.length}, ${bytesText(collectives.reduce((sum, { bytes }) => sum + bytes, 0))} in all`,
        collectiveColumns,
        collectives.map((row) => ({ cells: collectiveCells(row) })),
      )
}</section>`;

import { heatMapChart } from "../charts/heat-map-chart.ts";
import { lineChart } from "../charts/line-chart.ts";
import { escapeText } from "../html.ts";
import { digitsText, shareText } from "../quantities.ts";
import type { ExpertLoads, ExpertMoves, RunReport } from "../run-report.ts";
import { sortableTable } from "./table.ts";

/** Maximum number of columns of a heat map; more columns would be too narrow to distinguish. */
const maxColumns = 160;
/** Maximum number of rows of a heat map, so that the page stays readable; the table lists all experts. */
const maxRows = 64;
/** Smallest relative load (load divided by mean load) of cells with the darkest shade. */
const most = 3;

const mean = (values: readonly number[]): number =>
  values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;

/**
 * Computes the load of each expert divided by the mean load of the step.
 * @returns relative[step][expert].
 */
const relativeLoads = ({ loads }: ExpertLoads): number[][] =>
  loads.map((own) => {
    const meanLoad = mean(own);
    return own.map((load) => (meanLoad > 0 ? load / meanLoad : 0));
  });

/** Averages the relative loads of each expert over bins of consecutive steps. */
const binned = (
  steps: readonly number[],
  relative: readonly (readonly number[])[],
): { readonly edges: number[]; readonly columns: number[][] } => {
  const each = Math.max(1, Math.ceil(steps.length / maxColumns));
  const numBins = Math.ceil(steps.length / each);
  const numExperts = relative[0]?.length ?? 0;
  const columns = Array.from({ length: numBins }, (_, bin) => {
    const some = relative.slice(bin * each, (bin + 1) * each);
    return Array.from({ length: numExperts }, (_, expert) => mean(some.map((own) => own[expert]!)));
  });
  const begins = Array.from({ length: numBins }, (_, bin) => steps[bin * each]! - 1);
  return { edges: [...begins, steps.at(-1) ?? 0], columns };
};

const times = (value: number): string => `${digitsText(value)}×`;

const layerSection = (loads: ExpertLoads): string => {
  const { layer, steps, droppedShare } = loads;
  const relative = relativeLoads(loads);
  const numExperts = relative[0]?.length ?? 0;
  const experts = Array.from({ length: numExperts }, (_, expert) => {
    const own = relative.map((row) => row[expert]!);
    return {
      expert,
      mean: mean(own),
      least: own.reduce((low, value) => Math.min(low, value), Number.POSITIVE_INFINITY),
      greatest: own.reduce((high, value) => Math.max(high, value), 0),
      idle: mean(own.map((value) => (value === 0 ? 1 : 0))),
    };
  });
  const visible =
    numExperts <= maxRows
      ? experts
      : experts
          .toSorted((a, b) => b.mean - a.mean)
          .slice(0, maxRows)
          .toSorted((a, b) => a.expert - b.expert);
  const { edges, columns } = binned(steps, relative);
  const busiest = mean(relative.map((own) => own.reduce((high, value) => Math.max(high, value), 0)));
  const words = `${layer}: the busiest of ${numExperts} experts has ${times(busiest)} the mean load, averaged over ${steps.length} steps; ${shareText(mean(droppedShare))} of the choices were dropped`;
  const map = heatMapChart(
    {
      rows: visible.map(({ expert }) => `${expert}`),
      edges,
      values: visible.map(({ expert }) => columns.map((own) => own[expert]!)),
      axis: "step",
      most,
    },
    { label: words },
  );
  const dropped = lineChart(
    [{ name: "dropped", kind: "exposed", points: steps.map((step, i) => [step, 100 * droppedShare[i]!] as const) }],
    { label: `${layer}: share of dropped choices, in percent, by step`, axis: "step" },
  );
  const table = sortableTable(
    `experts-${layer}`,
    `Experts of ${layer}: load relative to the mean, by step`,
    [
      { heading: "expert", numeric: true },
      { heading: "mean", numeric: true },
      { heading: "least", numeric: true },
      { heading: "greatest", numeric: true },
      { heading: "idle", numeric: true, meaning: "share of the steps in which no token chose this expert" },
    ],
    experts.map((one) => ({
      cells: [`${one.expert}`, times(one.mean), times(one.least), times(one.greatest), shareText(one.idle)],
    })),
  );
  const few = visible.length < numExperts ? ` The ${maxRows} busiest of ${numExperts} experts are drawn.` : "";
  return `<h3>${escapeText(layer)}</h3>
<p>${escapeText(words)}.${few}</p>
<figure>${map}<figcaption class="quiet">Load of each expert relative to the mean, by step: empty for no load, darkest from ${most}× on.</figcaption></figure>
${droppedShare.some((share) => share > 0) ? `<figure>${dropped}<figcaption class="quiet">Dropped choices, in percent.</figcaption></figure>` : ""}
${table}`;
};

/** Renders the table of experts that moved between ranks; empty text if no expert moved. */
const movesTable = (moves: readonly ExpertMoves[]): string =>
  moves.length === 0
    ? ""
    : sortableTable(
        "expert-moves",
        "Experts that moved between ranks; predicted loads of ranks",
        [
          { heading: "step", numeric: true },
          { heading: "layer", numeric: false },
          { heading: "experts", numeric: true },
          { heading: "busiest before", numeric: true, meaning: "load of the busiest rank divided by the mean load" },
          { heading: "busiest after", numeric: true },
        ],
        moves.map(({ step, layer, moves: numMoves, busiestBefore, busiestAfter }) => ({
          cells: [`${step}`, layer, `${numMoves}`, times(busiestBefore), times(busiestAfter)],
        })),
      );

/** Renders the section on expert loads over time; empty text for a model without experts. */
export const expertSection = ({ experts, moves }: Pick<RunReport, "experts" | "moves">): string =>
  experts.length === 0
    ? ""
    : `<section aria-labelledby="experts-heading"><h2 id="experts-heading">Experts</h2>
${experts.map(layerSection).join("\n")}
${movesTable(moves)}</section>`;

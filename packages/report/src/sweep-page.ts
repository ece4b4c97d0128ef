import { lineChart } from "./charts/line-chart.ts";
import { clientScript } from "./client/client-script.ts";
import { escapeText } from "./html.ts";
import { pageOf } from "./page.ts";
import { digitsText, secondsText } from "./quantities.ts";
import { legend } from "./sections/legend.ts";
import { sortableTable } from "./sections/table.ts";
import { tile } from "./sections/tile.ts";

/** Settings and result of one trial of a hyperparameter search. */
export interface SweepTrial {
  readonly trial: number;
  /** Values of the searched job settings, in the order of `SweepReport.keys`. */
  readonly values: readonly unknown[];
  /** Validation loss. Undefined if the trial failed or is still running. */
  readonly loss: number | undefined;
  readonly seconds: number | undefined;
  readonly state: string;
}

/** Content of the HTML page of a hyperparameter search. */
export interface SweepReport {
  readonly name: string;
  /** Description of the search for the page's head. */
  readonly about: string;
  /** Job settings that are searched. `isLog`: whether values are sampled uniformly on a logarithmic scale. */
  readonly keys: readonly { readonly key: string; readonly isLog: boolean }[];
  /** Trials, best trial first. */
  readonly trials: readonly SweepTrial[];
  /** Command that trains with the best settings on all samples. Undefined: there is no such command. */
  readonly command: string | undefined;
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? "–"));

const progressSection = ({ trials }: SweepReport): string => {
  const finished = trials
    .flatMap(({ trial, loss }) => (loss === undefined ? [] : [[trial, loss] as const]))
    .toSorted(([a], [b]) => a - b);
  const best = finished.map(
    ([trial], i) => [trial, Math.min(...finished.slice(0, i + 1).map(([, loss]) => loss))] as const,
  );
  const svg = lineChart(
    [
      { name: "best so far", kind: "update", points: best },
      { name: "trial", kind: "exposed", points: finished, isScattered: true },
    ],
    { label: `Held-out loss by trial: ${finished.length} trials`, axis: "trial" },
  );
  const key = legend([
    ["exposed", "validation loss of a trial"],
    ["update", "the best so far"],
  ]);
  return `<section aria-labelledby="trials-heading"><h2 id="trials-heading">Trials in their order</h2><figure>${svg}</figure>${key}</section>`;
};

/** Renders the chart of loss by value for one setting, if its values are numbers. */
const keySection = ({ keys, trials }: SweepReport, index: number): string => {
  const { key, isLog } = keys[index]!;
  const points = trials
    .flatMap(({ values, loss }) => {
      const value = values[index];
      return typeof value === "number" && loss !== undefined
        ? [[isLog ? Math.log10(value) : value, loss] as const]
        : [];
    })
    .toSorted(([a], [b]) => a - b);
  if (new Set(points.map(([x]) => x)).size < 2) return "";
  const axis = isLog ? "log₁₀" : "";
  const heading = isLog ? `log₁₀ ${key}` : key;
  const svg = lineChart([{ name: key, kind: "exposed", points, isScattered: true }], {
    label: `Held-out loss by ${heading}: ${points.length} trials`,
    axis,
  });
  return `<section aria-labelledby="key-${index}"><h2 id="key-${index}">Held-out loss by ${escapeText(heading)}</h2><figure>${svg}</figure></section>`;
};

const tableSection = ({ keys, trials }: SweepReport): string => {
  const isNumeric = keys.map((_, index) => trials.every(({ values }) => typeof values[index] === "number"));
  const table = sortableTable(
    "trials",
    "Trials, the best first",
    [
      { heading: "trial", numeric: true },
      { heading: "validation loss", numeric: true },
      ...keys.map(({ key }, index) => ({ heading: key, numeric: isNumeric[index]! })),
      { heading: "took", numeric: true },
      { heading: "state", numeric: false },
    ],
    trials.map(({ trial, values, loss, seconds, state }) => ({
      cells: [
        String(trial),
        digitsText(loss, 4),
        ...keys.map((_, index) => textOf(values[index])),
        seconds === undefined ? "–" : secondsText(seconds),
        state,
      ],
    })),
  );
  return `<section aria-labelledby="table-heading"><h2 id="table-heading">All trials</h2>${table}</section>`;
};

const bestSection = ({ keys, trials, command }: SweepReport): string => {
  const [best] = trials;
  if (best?.loss === undefined) return '<p class="quiet">No trial has a loss yet.</p>';
  const tiles = [
    tile("best validation loss", digitsText(best.loss, 4), `trial ${best.trial} of ${trials.length}`),
    ...keys.map(({ key }, index) => tile(key, textOf(best.values[index]), "in the best trial")),
  ];
  const train =
    command === undefined
      ? ""
      : `<p>To train with these settings on all samples: <code>${escapeText(command)}</code></p>`;
  return `<dl class="tiles">${tiles.join("")}</dl>${train}`;
};

/**
 * Renders a hyperparameter search as a self-contained HTML file: the best settings, the command that trains with them,
 * all trials, and the loss by each setting. All text is escaped, and the page forbids all requests.
 *
 * Cost: O(trials² + trials · keys).
 */
export const sweepPage = (report: SweepReport): string =>
  pageOf(`${report.name}: sweep`, [
    `<header><h1>${escapeText(report.name)}</h1><p class="quiet">${escapeText(report.about)}</p></header>`,
    bestSection(report),
    progressSection(report),
    ...report.keys.map((_, index) => keySection(report, index)),
    tableSection(report),
    `<script>\n${clientScript()}\n</script>`,
  ]);

import { median } from "@skein/measuring";
import { lineChart } from "./charts/line-chart.ts";
import { clientScript } from "./client/client-script.ts";
import { escapeText } from "./html.ts";
import { pageOf } from "./page.ts";
import { digitsText, shareText } from "./quantities.ts";
import type { RunReport, StepValue } from "./run-report.ts";
import { expertSection } from "./sections/experts.ts";
import { histogramSection } from "./sections/histograms.ts";
import { legend } from "./sections/legend.ts";
import { tile } from "./sections/tile.ts";

const lastOf = (values: readonly StepValue[] | undefined): StepValue | undefined => values?.at(-1);

const tiles = ({ losses, evaluations, samplesPerSecond, exposedShare, exposedAllToAllShare }: RunReport): string => {
  const [last, tested] = [lastOf(losses), lastOf(evaluations["loss"])];
  const others = Object.entries(evaluations).filter(([name]) => name !== "loss");
  const rates = samplesPerSecond.map(([, rate]) => rate);
  return `<dl class="tiles">${[
    last === undefined ? "" : tile("training loss", digitsText(last[1]), `after ${last[0]} steps`),
    tested === undefined
      ? tile("held-out loss", "–", "not evaluated yet")
      : tile(
          "held-out loss",
          digitsText(tested[1]),
          others.map(([name, values]) => `${name} ${digitsText(lastOf(values)![1])}`).join(", "),
        ),
    rates.length === 0 ? "" : tile("speed", `${digitsText(median(rates))} samples/s`, "median of the steps"),
    exposedShare === undefined
      ? ""
      : tile(
          "exposed communication",
          shareText(exposedShare),
          exposedAllToAllShare === undefined
            ? "median of the steps"
            : `${shareText(exposedAllToAllShare)} for tokens to experts and back`,
          "k-exposed",
        ),
  ].join("")}</dl>`;
};

const lossSection = ({ losses, evaluations }: RunReport): string => {
  const tested = evaluations["loss"] ?? [];
  const svg = lineChart(
    [
      { name: "training", kind: "forward", points: losses },
      { name: "held out", kind: "exposed", points: tested, isScattered: true },
    ],
    { label: `Loss by step: ${losses.length} steps, ${tested.length} evaluations`, axis: "step" },
  );
  const key = legend([
    ["forward", "training, mean of all ranks"],
    ...(tested.length > 0 ? [["exposed", "held-out samples"] as const] : []),
  ]);
  return `<section aria-labelledby="loss-heading"><h2 id="loss-heading">Loss</h2><figure>${svg}</figure>${key}</section>`;
};

/**
 * Renders a training run as a self-contained HTML file: key metrics, loss, expert loads of mixtures of experts, and the
 * latest histograms of weights and gradients. All text is escaped, and the page forbids all requests.
 *
 * Cost: linear in steps and experts; charts are downsampled to screen resolution.
 */
export const runPage = (report: RunReport): string =>
  pageOf(`${report.name}: training`, [
    `<header><h1>${escapeText(report.name)}</h1><p class="quiet">${escapeText(report.about)}</p></header>`,
    report.origin === undefined ? "" : `<p class="quiet">${escapeText(report.origin)}</p>`,
    tiles(report),
    lossSection(report),
    expertSection(report),
    histogramSection(report),
    `<script>\n${clientScript()}\n</script>`,
  ]);

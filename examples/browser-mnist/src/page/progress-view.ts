import type { Report } from "../messages.ts";
import { findElement } from "./find-element.ts";
import { leadingDigit } from "./leading-digit.ts";
import { LineChart } from "./line-chart.ts";
import { smoothing } from "./smoothing.ts";
import { ThinnedSeries } from "./thinned-series.ts";

type StepsReport = Extract<Report, { type: "steps" }>;

const chartPoints = 1000;
const lossDecay = 0.9;

const percentOf = (share: number): string => `${(100 * share).toFixed(1)} %`;

const setText = (id: string, text: string): void => {
  findElement(id, HTMLElement).textContent = text;
};

/** View of the metrics and charts of the current training run. */
export class ProgressView {
  private readonly lossElement = findElement("loss-chart", HTMLElement);
  private readonly accuracyElement = findElement("accuracy-chart", HTMLElement);
  private readonly lossChart = new LineChart(this.lossElement, {
    lines: [
      { label: "each step", colour: "--faint", width: 1 },
      { label: "smoothed", colour: "--accent", width: 2 },
    ],
    scale: "logarithmic",
    format: (value) => String(Number(value.toPrecision(1))),
    range: (least, greatest) => [leadingDigit(0.8 * least), 1.25 * greatest],
  });
  private readonly accuracyChart = new LineChart(this.accuracyElement, {
    lines: [{ label: "test accuracy", colour: "--right", width: 2, dots: true }],
    scale: "linear",
    format: (value) => `${Math.round(100 * value)} %`,
    range: (least) => [Math.min(0.8, Math.floor(10 * least) / 10), 1],
  });
  private losses = new ThinnedSeries(chartPoints);
  private smoothed = new ThinnedSeries(chartPoints);
  private accuracies = new ThinnedSeries(chartPoints);
  private smooth = smoothing(lossDecay);

  /** Clears all metrics and charts for a new training run. */
  clear(parameterCount: number): void {
    this.losses = new ThinnedSeries(chartPoints);
    this.smoothed = new ThinnedSeries(chartPoints);
    this.accuracies = new ThinnedSeries(chartPoints);
    this.smooth = smoothing(lossDecay);
    this.lossChart.show([], [], []);
    this.accuracyChart.show([], []);
    for (const id of ["loss", "accuracy", "steps-per-second", "samples-per-second", "sent", "memory"]) setText(id, "–");
    setText("step", "0");
    setText("parameters", parameterCount.toLocaleString("en"));
  }

  showSteps({ step, losses, stepsPerSecond, bytesInUse, bytesSentPerStep }: StepsReport, batchSize: number): void {
    let smoothedLoss = 0;
    losses.forEach((loss, i) => {
      const at = step - losses.length + i + 1;
      smoothedLoss = this.smooth(loss);
      // A logarithmic scale cannot show 0.
      this.losses.push(at, Math.max(loss, 1e-6));
      this.smoothed.push(at, Math.max(smoothedLoss, 1e-6));
    });
    this.lossChart.show(this.losses.xs, this.losses.ys, this.smoothed.ys);
    this.lossElement.ariaLabel = `Training loss by step: ${smoothedLoss.toFixed(3)}, smoothed, after ${step} steps`;
    setText("step", step.toLocaleString("en"));
    setText("loss", smoothedLoss.toFixed(4));
    setText("steps-per-second", stepsPerSecond.toFixed(stepsPerSecond < 10 ? 2 : 0));
    setText("samples-per-second", Math.round(stepsPerSecond * batchSize).toLocaleString("en"));
    setText("sent", bytesSentPerStep === 0 ? "–" : `${(bytesSentPerStep / 1024).toFixed(1)} KiB`);
    setText("memory", `${(bytesInUse / 2 ** 20).toFixed(1)} MiB`);
    findElement("memory", HTMLElement).title = `${bytesInUse.toLocaleString("en")} bytes`;
  }

  showAccuracy(step: number, accuracy: number): void {
    this.accuracies.push(step, accuracy);
    this.accuracyChart.show(this.accuracies.xs, this.accuracies.ys);
    this.accuracyElement.ariaLabel = `Test accuracy by step: ${percentOf(accuracy)} after ${step} steps`;
    setText("accuracy", percentOf(accuracy));
  }
}

import uPlot from "uplot";
import type { ChartLine } from "./chart-lines.ts";
import { colourNamed } from "./theme.ts";
import { thin } from "./thin.ts";

export interface PlotView {
  readonly from: number;
  readonly to: number;
  /** Upper bound of the values, such as 1 for a share. Absent: no bound. */
  readonly most?: number | undefined;
  readonly isLogarithmic: boolean;
  readonly isSmoothed: boolean;
  /** Whether values on the x axis are integers. */
  readonly isWholeX: boolean;
  readonly textX: (value: number) => string;
  readonly textY: (value: number) => string;
}

export interface PlotEvents {
  /** Called with the position of the pointer on the x axis. Undefined: the pointer has left the chart. */
  pointed(x: number | undefined): void;
  /** Called with a range selected with the pointer. Undefined: the complete axis. */
  ranged(range: { readonly from: number; readonly to: number } | undefined): void;
}

const height = 200;
const dashes: readonly number[][] = [[], [6, 3], [2, 3], [9, 3, 2, 3]];
/** Possible distances between ticks of an axis. */
const distances: number[] = Array.from({ length: 25 }, (_, i) => i - 9).flatMap((power) =>
  [1, 2, 2.5, 5].map((one) => Number(`${one}e${power}`)),
);
const wholeDistances = distances.filter(Number.isInteger);
/** Maximum number of points of a line for which each point is marked. */
const fewPoints = 40;

/** A uPlot chart, rebuilt when its lines or colors change. Lines are thinned to the resolution of the pixel columns. */
export class Plot {
  private readonly container: HTMLElement;
  private readonly events: PlotEvents;
  private plot: uPlot | undefined;
  private shape = "";
  private view: PlotView | undefined;
  private width = 0;

  constructor(container: HTMLElement, events: PlotEvents) {
    this.container = container;
    this.events = events;
  }

  draw(lines: readonly ChartLine[], view: PlotView, colours: number): void {
    const width = Math.max(120, this.container.clientWidth);
    this.view = view;
    const drawn = view.isSmoothed ? lines.flatMap((line) => [{ ...line, y: line.raw, isFaint: true }, line]) : lines;
    const columns = Math.max(50, Math.round(width) - 60);
    const above = view.isLogarithmic ? 0 : -Infinity;
    const own = { from: view.from, to: view.to, columns, above };
    const thinned = drawn.map(({ x, y, length }) => thin(x, y, length, own));
    const step = (view.to - view.from) / columns || 1;
    const xs = Array.from({ length: 2 * columns }, (_, i) => view.from + ((i + 0.5) / 2) * step);
    const marks = drawn.map(
      (line, i) => thinned[i]!.points > 0 && thinned[i]!.points <= fewPoints && !("isFaint" in line),
    );
    const shape = JSON.stringify([
      drawn.map(({ key, colour }, i) => [key, colour, marks[i]]),
      view.isLogarithmic,
      view.isSmoothed,
      colours,
    ]);
    const data: uPlot.AlignedData = [xs, ...thinned.map(({ values }) => values)];
    if (this.plot === undefined || shape !== this.shape) {
      this.plot?.destroy();
      this.plot = new uPlot(this.options(drawn, marks, width), data, this.container);
      this.shape = shape;
      this.width = width;
      this.plot.over.addEventListener("dblclick", () => this.events.ranged(undefined));
      this.plot.over.addEventListener("mouseleave", () => this.events.pointed(undefined));
      return;
    }
    if (width !== this.width) {
      this.width = width;
      this.plot.setSize({ width, height });
    }
    this.plot.setData(data);
  }

  /**
   * Shows a position on the x axis that was selected on another chart or with the keyboard. Undefined: hides the
   * position.
   */
  point(x: number | undefined): void {
    const left = x === undefined || this.plot === undefined ? -10 : this.plot.valToPos(x, "x");
    this.plot?.setCursor({ left, top: left < 0 ? -10 : 0 }, false);
  }

  destroy(): void {
    this.plot?.destroy();
    this.plot = undefined;
  }

  private rangeOf(least: number | null, greatest: number | null): [number, number] {
    const [from, to] = uPlot.rangeNum(least ?? 0, greatest ?? 1, 0.1, true) as [number, number];
    const { most = to } = this.view!;
    return [from, Math.max(greatest ?? 1, Math.min(to, most))];
  }

  private options(lines: readonly ChartLine[], marks: readonly boolean[], width: number): uPlot.Options {
    const axis: uPlot.Axis = {
      stroke: colourNamed("--quiet"),
      grid: { stroke: colourNamed("--line"), width: 1 },
      ticks: { show: false },
      font: "11px system-ui, sans-serif",
    };
    const { isLogarithmic } = this.view!;
    return {
      width,
      height,
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
      scales: {
        x: {
          time: false,
          range: () => [this.view!.from, this.view!.to > this.view!.from ? this.view!.to : this.view!.from + 1],
        },
        y: isLogarithmic ? { distr: 3 } : { range: (_, least, greatest) => this.rangeOf(least, greatest) },
      },
      axes: [
        {
          ...axis,
          size: 26,
          incrs: () => (this.view!.isWholeX ? wholeDistances : distances),
          values: (_, splits) => splits.map((value) => this.view!.textX(value)),
        },
        {
          ...axis,
          size: 58,
          values: (_, splits) => splits.map((value) => (value === null ? "" : this.view!.textY(value))),
        },
      ],
      series: [
        {},
        ...lines.map((line, i): uPlot.Series => {
          const stroke = colourNamed(`--run-${line.colour}`);
          const isFaint = "isFaint" in line;
          return {
            label: line.key,
            stroke,
            width: isFaint ? 1 : 1.75,
            alpha: isFaint ? 0.3 : 1,
            dash: dashes[line.dash]!,
            spanGaps: true,
            points: { show: marks[i]!, size: 5, fill: stroke },
          };
        }),
      ],
      hooks: {
        setCursor: [
          (plot) => {
            const { left, event } = plot.cursor;
            if (event !== undefined && event !== null && left !== undefined && left >= 0)
              this.events.pointed(plot.posToVal(left, "x"));
          },
        ],
        setSelect: [
          (plot) => {
            const { left, width: chosen } = plot.select;
            if (chosen < 4) return;
            const to = plot.posToVal(left + chosen, "x");
            this.events.ranged({ from: plot.posToVal(left, "x"), to });
            plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          },
        ],
      },
    };
  }
}

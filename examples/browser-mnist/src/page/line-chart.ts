import uPlot from "uplot";

export interface LineOptions {
  readonly label: string;
  /** Name of the CSS custom property that contains the color of the line, such as `--accent`. */
  readonly colour: string;
  readonly width: number;
  /** Whether each value is marked with a dot. Default: false. */
  readonly dots?: boolean;
}

export interface LineChartOptions {
  readonly lines: readonly LineOptions[];
  readonly scale: "linear" | "logarithmic";
  readonly format: (value: number) => string;
  /** Returns the range of the vertical axis, from the smallest and largest value. */
  readonly range: (least: number, greatest: number) => [number, number];
}

const height = 220;

/** Possible distances between ticks on the axis of training steps. All are integers, because steps are. */
const stepIncrements = [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7].flatMap((ten) => [ten, 2 * ten, 5 * ten]);

/** Chart of values over steps, in the page's colors, as wide as its container. */
export class LineChart {
  private readonly container: HTMLElement;
  private readonly options: LineChartOptions;
  private plot: uPlot;
  private data: uPlot.AlignedData;

  constructor(container: HTMLElement, options: LineChartOptions) {
    this.container = container;
    this.options = options;
    this.data = [[], ...options.lines.map(() => [])];
    this.plot = this.draw();
    new ResizeObserver(() => this.plot.setSize({ width: container.clientWidth, height })).observe(container);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.plot.destroy();
      this.plot = this.draw();
    });
  }

  /** Draws new values over `steps`: one list of values per line of the chart. */
  show(steps: readonly number[], ...lines: readonly (readonly number[])[]): void {
    this.data = [[...steps], ...lines.map((values) => [...values])];
    this.plot.setData(this.data);
  }

  private draw(): uPlot {
    const { lines, scale, format, range } = this.options;
    const style = getComputedStyle(this.container);
    const colour = (name: string): string => style.getPropertyValue(name);
    const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
    return new uPlot(
      {
        width: Math.max(this.container.clientWidth, 100),
        height,
        legend: { show: false },
        cursor: { show: false },
        scales: {
          x: { time: false, range: (_, least, greatest) => [least, Math.max(greatest, least + 1)] },
          y: {
            distr: scale === "logarithmic" ? 3 : 1,
            range: (_, least, greatest) => range(least ?? 1, greatest ?? 1),
          },
        },
        axes: [
          { ...axis, size: 30, incrs: stepIncrements },
          { ...axis, size: 50, values: (_, splits) => splits.map((value) => (value === null ? "" : format(value))) },
        ],
        series: [
          {},
          ...lines.map(({ label, colour: name, width, dots = false }) => {
            const stroke = colour(name);
            return { label, stroke, width, points: { show: dots, size: 5, fill: stroke } };
          }),
        ],
      },
      this.data,
      this.container,
    );
  }
}

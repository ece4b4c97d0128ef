import { fitLink } from "@skein/collectives";
import { byteUnits, escapeText as escape, pixel as round, tickTexts, timeUnits } from "@skein/report";
import { type LogAxis, logAxis } from "./log-axis.ts";

export interface PlotPoint {
  readonly bytes: number;
  readonly microseconds: number;
}

export interface PlotSeries {
  readonly name: string;
  /** Whether the series belongs to a peer; peers are drawn dashed. */
  readonly peer: boolean;
  readonly points: readonly PlotPoint[];
}

/**
 * Plot of message times by message size. This code draws it for three reasons: Observable Plot 0.6 needs a DOM on a
 * server (42 packages and jsdom); Vega-Lite 6.5 depends on 76 packages and Vega; and neither has a legend with a fitted
 * line in each entry.
 */
export interface Plot {
  /** Name of the plot, part of the file name. */
  readonly name: string;
  readonly title: string;
  readonly series: readonly PlotSeries[];
}

const width = 1120;
const height = 640;
const area = { left: 76, right: 700, top: 52, bottom: 584 };
const legend = { left: 724, top: 72, line: 42 };
/** Number of line segments of a fitted curve, large enough that no corner is visible. */
const curveSteps = 96;

// Colors differ by hue and lightness, so that most color-blind readers can distinguish them. Series with similar hues
// also have different marks.
const colours = [
  "#1b6ca8",
  "#d1495b",
  "#2e933c",
  "#7d4e9e",
  "#e08e0b",
  "#0f8b8d",
  "#8c564b",
  "#4a4a4a",
  "#c2549d",
  "#7a8b00",
  "#5b7fd6",
];
const marks = ["circle", "square", "diamond", "triangle"] as const;

const significant = (value: number): string => (value >= 100 ? value.toFixed(0) : value.toPrecision(2));

/**
 * Fits a line through the points by `fitLink`. Returns a function from bytes to microseconds, and the text of the
 * legend.
 */
const fitOf = ({ points }: PlotSeries): { readonly at: (bytes: number) => number; readonly words: string } => {
  const { secondsPerMessage, secondsPerByte } = fitLink(
    points.map(({ bytes, microseconds }) => ({ bytes, seconds: microseconds / 1e6 })),
  );
  const rate = secondsPerByte === 0 ? "∞" : significant(1e-9 / secondsPerByte);
  return {
    at: (bytes) => 1e6 * (secondsPerMessage + secondsPerByte * bytes),
    words: `α ${significant(1e6 * secondsPerMessage)} µs, 1/β ${rate} GB/s`,
  };
};

const mark = (index: number, x: number, y: number): string => {
  const fill = `fill="${colours[index % colours.length]!}"`;
  const [cx, cy] = [round(x), round(y)];
  switch (marks[index % marks.length]!) {
    case "square":
      return `<rect x="${round(cx - 4)}" y="${round(cy - 4)}" width="8" height="8" ${fill}/>`;
    case "diamond":
      return `<path d="M${cx} ${round(cy - 5.5)}l5.5 5.5l-5.5 5.5l-5.5 -5.5z" ${fill}/>`;
    case "triangle":
      return `<path d="M${cx} ${round(cy - 5.5)}l5.5 9.5h-11z" ${fill}/>`;
    default:
      return `<circle cx="${cx}" cy="${cy}" r="4.5" ${fill}/>`;
  }
};

const grid = (x: LogAxis, y: LogAxis): string[] => [
  ...y.minorTicks.map((tick) => `<path d="M${area.left} ${round(y.at(tick))}H${area.right}" stroke="#f0f0f0"/>`),
  ...x.ticks.map((tick) => `<path d="M${round(x.at(tick))} ${area.top}V${area.bottom}" stroke="#dddddd"/>`),
  ...y.ticks.map((tick) => `<path d="M${area.left} ${round(y.at(tick))}H${area.right}" stroke="#dddddd"/>`),
  ...x.ticks.map(
    (tick) =>
      `<text x="${round(x.at(tick))}" y="${area.bottom + 20}" text-anchor="middle">${tickTexts([tick], byteUnits)[0]!}</text>`,
  ),
  ...y.ticks.map(
    (tick) =>
      `<text x="${area.left - 8}" y="${round(y.at(tick) + 4)}" text-anchor="end">${tickTexts([tick / 1e6], timeUnits)[0]!}</text>`,
  ),
];

/** Returns axes that cover all points. @throws Error if a plot has no points. */
const axesOf = (series: readonly PlotSeries[]): { readonly x: LogAxis; readonly y: LogAxis } => {
  const points = series.flatMap((one) => one.points);
  if (points.length === 0) throw new Error("a plot needs at least one point");
  const range = (values: readonly number[]): { from: number; to: number } => ({
    from: Math.min(...values),
    to: Math.max(...values),
  });
  const sizes = range(points.map(({ bytes }) => bytes));
  const times = range(points.map(({ microseconds }) => microseconds));
  return {
    x: logAxis({ from: sizes.from / 1.6, to: sizes.to * 1.6, pixels: [area.left, area.right], base: 4 }),
    y: logAxis({
      from: times.from / 1.6,
      to: times.to * 1.6,
      pixels: [area.bottom, area.top],
      base: 10,
      minor: [2, 3, 4, 5, 6, 7, 8, 9],
    }),
  };
};

/**
 * Draws times by message size on two logarithmic axes as an SVG. Each median has a mark. Each series has a fitted line
 * α + β · bytes, with α and 1/β in the legend. `fitLink` fits the line by relative errors.
 */
export const formatPlot = ({ title, series }: Plot): string => {
  const { x, y } = axesOf(series);
  const ends = { left: area.left, right: area.right };
  const curves = series.map((one, index) => {
    const fit = fitOf(one);
    const stroke = `stroke="${colours[index % colours.length]!}" stroke-width="1.5"${one.peer ? ' stroke-dasharray="6 4"' : ""}`;
    const bytesAt = (step: number): number => {
      const [from, to] = [
        Math.min(...one.points.map(({ bytes }) => bytes)),
        Math.max(...one.points.map(({ bytes }) => bytes)),
      ];
      return from * (to / from) ** (step / curveSteps);
    };
    const path = Array.from({ length: curveSteps + 1 }, (_, step) => {
      const bytes = bytesAt(step);
      return `${round(x.at(bytes))},${round(y.at(fit.at(bytes)))}`;
    }).join(" ");
    const top = legend.top + index * legend.line;
    return {
      line: `<polyline points="${path}" fill="none" ${stroke} clip-path="url(#area)"/>`,
      marks: one.points.map(({ bytes, microseconds }) => mark(index, x.at(bytes), y.at(microseconds))).join(""),
      legend: [
        `<path d="M${legend.left} ${top - 4}h28" ${stroke}/>`,
        mark(index, legend.left + 14, top - 4),
        `<text x="${legend.left + 38}" y="${top}">${escape(one.name)}</text>`,
        `<text x="${legend.left + 38}" y="${top + 17}" fill="#666666">${escape(fit.words)}</text>`,
      ].join(""),
    };
  });
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="sans-serif" font-size="13" fill="#222222">`,
    `<title>${escape(title)}</title>`,
    `<clipPath id="area"><rect x="${ends.left}" y="${area.top}" width="${ends.right - ends.left}" height="${area.bottom - area.top}"/></clipPath>`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    `<text x="${area.left}" y="30" font-size="17">${escape(title)}</text>`,
    ...grid(x, y),
    `<rect x="${ends.left}" y="${area.top}" width="${ends.right - ends.left}" height="${area.bottom - area.top}" fill="none" stroke="#888888"/>`,
    `<text x="${(ends.left + ends.right) / 2}" y="${height - 14}" text-anchor="middle">bytes of each rank's vector</text>`,
    `<text x="${legend.left}" y="${legend.top - 26}" fill="#666666">marks: medians; lines: α + β · bytes, of peers dashed</text>`,
    ...curves.map(({ line }) => line),
    ...curves.map((curve) => curve.marks),
    ...curves.map((curve) => curve.legend),
    "</svg>",
  ].join("\n")}\n`;
};

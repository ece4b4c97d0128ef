import type { Measurement } from "./measure.ts";

/** Amount of work per call, such as `{ amount: 2e9, unit: "FLOP" }`. */
export interface Work {
  readonly amount: number;
  readonly unit: string;
}

/** Formats a rate with three digits and a decimal prefix: 36.1 GFLOP/s. */
export const formatRate = (perSecond: number, unit: string): string => {
  const [scale, prefix] =
    perSecond >= 1e9 ? [1e9, "G"] : perSecond >= 1e6 ? [1e6, "M"] : perSecond >= 1e3 ? [1e3, "k"] : [1, ""];
  return `${significant(perSecond / scale)} ${prefix}${unit}/s`;
};

/** Formats a number with three significant digits, or as an integer if it is at least 1000. */
export const significant = (value: number): string => (value >= 1000 ? value.toFixed(0) : value.toPrecision(3));

/**
 * Formats a measurement as one line: the rate at the median if `work` is given, then median ± median absolute
 * deviation, the fastest sample, and the number of samples.
 */
export const measurementLine = (name: string, { median, mad, n, best }: Measurement, work?: Work): string => {
  const [scale, unit] = median >= 1000 ? [1e-3, "s"] : median >= 1 ? [1, "ms"] : [1e3, "µs"];
  const rate = work === undefined ? "" : formatRate((1000 * work.amount) / median, work.unit).padStart(18);
  const [middle, spread, fastest] = [median, mad, best].map((milliseconds) => significant(milliseconds * scale)) as [
    string,
    string,
    string,
  ];
  return `${name.padEnd(56)}${rate} ${middle.padStart(8)} ± ${spread} ${unit} (best ${fastest}, ${n} samples)`;
};

/** Formats a measurement as one line, and writes the line to standard output. */
export const printMeasurement = (name: string, measurement: Measurement, work?: Work): void =>
  void process.stdout.write(`${measurementLine(name, measurement, work)}\n`);

import { ConfigError, eachLine } from "@skein/cli/node";

/** A parsed line of `metrics.jsonl`. Quantities other than type and step are not checked. */
export interface MetricLine {
  readonly type: string;
  readonly step: number;
  readonly [quantity: string]: unknown;
}

const isMetricLine = (value: unknown): value is MetricLine =>
  typeof value === "object" &&
  value !== null &&
  "type" in value &&
  typeof value.type === "string" &&
  "step" in value &&
  typeof value.step === "number";

/**
 * Reads all lines of a run's metrics. An incomplete last line is skipped, because the run was killed or is still
 * writing.
 *
 * @throws ConfigError with the line number if another line is not a line of metrics; the system's error if the file
 * cannot be read.
 */
export const readMetricLines = (path: string): MetricLine[] => {
  const lines: MetricLine[] = [];
  let [number, wrong] = [0, 0];
  eachLine(path, (line) => {
    number++;
    if (wrong > 0)
      throw new ConfigError([
        `${path}: line ${wrong} is not a line of metrics, an object with type and step; remove it, or name another run`,
      ]);
    let value: unknown;
    try {
      value = JSON.parse(line.toString("utf8"));
    } catch {
      value = undefined;
    }
    if (isMetricLine(value)) lines.push(value);
    else wrong = number;
  });
  return lines;
};

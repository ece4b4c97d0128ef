import { ConfigError } from "../errors.ts";
import { eachLine } from "../files/each-line.ts";

/** A line of `metrics.jsonl`, as whoever wrote it has it. */
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
 * All lines of a run's metrics. The last one may be cut, by a run that was killed or is writing it, and counts as none.
 *
 * @throws ConfigError for another line that is none of metrics, with its number; the system's error.
 */
export const readMetricLines = (path: string): MetricLine[] => {
  const lines: MetricLine[] = [];
  let [number, wrong] = [0, 0];
  eachLine(path, (line) => {
    number++;
    if (wrong > 0)
      throw new ConfigError([
        `${path}: line ${wrong} is no line of metrics, an object with type and step; take it out, or name another run`,
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

import { closeSync, existsSync, openSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import { copyLines } from "@skein/cli/node";
import type { ParameterHistograms } from "@skein/report";
import { HistogramsFile, histogramsFile } from "./histograms-file.ts";
import { metricsFile } from "./run-file-names.ts";
import { EventFile } from "./tensorboard.ts";

export { metricsFile };

/** A line of `metrics.jsonl`: one measurement of a run. The name of each quantity includes its unit. */
export interface Measurement {
  readonly type: "step" | "update" | "evaluation" | "checkpoint" | "placement" | "histograms" | `rank-${number}`;
  /** Number of completed steps. */
  readonly step: number;
  readonly [quantity: string]: number | string;
}

export interface MetricSink {
  record(measurement: Measurement): void;
  /** Records histograms of parameters after a step. @param isLast Whether these are the last parameters of the step. */
  histograms(step: number, parameters: readonly ParameterHistograms[], isLast: boolean): void;
  /** Removes all records after `step`, because the run continues from there. */
  rewind(step: number): void;
  close(): void;
}

/** Removes the lines written after the checkpoint from which a run resumes, because those steps will be repeated. */
const dropLinesAfter = (path: string, step: number): void => {
  if (!existsSync(path)) return;
  copyLines(path, `${path}.tmp`, (line) => {
    try {
      return (JSON.parse(line) as Measurement).step <= step;
    } catch {
      return false; // the last line of a killed run may be incomplete
    }
  });
  renameSync(`${path}.tmp`, path);
};

/**
 * Whether a file records a step: each step up to `allUpTo`, each 10th step up to 10 × `allUpTo`, each 100th step up to
 * 100 × `allUpTo`, and so on.
 */
const isRecordedStep = (step: number, allUpTo: number): boolean => {
  let every = 1;
  while (step > allUpTo * every) every *= 10;
  return step % every === 0;
};

/** Whether `metrics.jsonl` records a step. A million steps take about 60 MB. */
export const isLineStep = (step: number): boolean => isRecordedStep(step, 100_000);

/** Whether the TensorBoard event file records a step. TensorBoard draws 1000 points per tag. */
export const isEventStep = (step: number): boolean => isRecordedStep(step, 10_000);

/** Whether lines of a type are written for each step. */
const isOfSteps = (type: Measurement["type"]): boolean =>
  type === "step" || type === "update" || type.startsWith("rank-");

/**
 * Writes `metrics.jsonl` and TensorBoard events to the output folder of a run. Later steps are recorded less often, so
 * that the files of long runs stay small. All evaluations, checkpoints and histograms are recorded.
 */
export class MetricFiles implements MetricSink {
  private readonly path: string;
  private lines: number;
  private readonly events: EventFile;
  private readonly ownHistograms: HistogramsFile;

  private readonly log: Pick<MetricSink, "record" | "rewind"> | undefined;

  /**
   * Opens the metric files in `folder`.
   * @param fromStep Number of steps completed before this process; later lines of an earlier run are removed.
   * @param log Additional destination for each line and each rewind.
   */
  constructor(folder: string, fromStep: number, log?: Pick<MetricSink, "record" | "rewind">) {
    this.log = log;
    this.path = join(folder, metricsFile);
    dropLinesAfter(this.path, fromStep);
    this.lines = openSync(this.path, "a");
    this.events = new EventFile(folder);
    this.ownHistograms = new HistogramsFile(folder);
    this.ownHistograms.rewind(fromStep);
  }

  record(measurement: Measurement): void {
    this.log?.record(measurement);
    const { type, step, ...quantities } = measurement;
    if (isOfSteps(type) && !isLineStep(step)) return;
    writeSync(this.lines, `${JSON.stringify(measurement)}\n`);
    const scalars = Object.entries(quantities).filter((entry): entry is [string, number] => Number.isFinite(entry[1]));
    if (type !== "checkpoint" && type !== "histograms" && (!isOfSteps(type) || isEventStep(step)))
      this.events.scalars(
        step,
        Object.fromEntries(
          scalars.map(([name, value]) => [
            `${type === "evaluation" ? "test" : type.startsWith("rank-") ? type : "train"}/${name}`,
            value,
          ]),
        ),
      );
  }

  histograms(step: number, parameters: readonly ParameterHistograms[], isLast: boolean): void {
    this.ownHistograms.record(step, parameters, isLast);
    for (const { path, weights, gradients } of parameters)
      this.events.histograms(step, {
        [`weights/${path}`]: weights,
        ...(gradients !== undefined && { [`gradients/${path}`]: gradients }),
      });
    if (isLast) this.record({ type: "histograms", step, file: histogramsFile });
  }

  rewind(step: number): void {
    this.ownHistograms.rewind(step);
    this.log?.rewind(step);
    closeSync(this.lines);
    dropLinesAfter(this.path, step);
    this.lines = openSync(this.path, "a");
  }

  close(): void {
    closeSync(this.lines);
    this.events.close();
  }
}

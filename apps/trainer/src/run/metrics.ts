import { closeSync, existsSync, openSync, renameSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { ParameterHistograms } from "@skein/report";
import { copyLines } from "./copy-lines.ts";
import { HistogramsFile, histogramsFile } from "../histograms/histograms-file.ts";
import { metricsFile } from "./run-file-names.ts";
import { EventFile } from "./tensorboard.ts";

export { metricsFile };

/** One measured moment of a run: a line of `metrics.jsonl`. Numbers with their units in their names. */
export interface Measurement {
  readonly type: "step" | "update" | "evaluation" | "checkpoint" | "placement" | "histograms" | `rank-${number}`;
  /** Steps done. */
  readonly step: number;
  readonly [quantity: string]: number | string;
}

export interface MetricSink {
  record(measurement: Measurement): void;
  /** Keep histograms of parameters after a step. @param isLast whether all of the step are there with these. */
  histograms(step: number, parameters: readonly ParameterHistograms[], isLast: boolean): void;
  /** Forget what came after `step`: the run goes on from there. */
  rewind(step: number): void;
  close(): void;
}

/** Remove what a run wrote after the checkpoint that it is resumed from; those steps will be done again. */
const keepUpTo = (path: string, step: number): void => {
  if (!existsSync(path)) return;
  copyLines(path, `${path}.tmp`, (line) => {
    try {
      return (JSON.parse(line) as Measurement).step <= step;
    } catch {
      return false; // the last line of a killed run may be cut
    }
  });
  renameSync(`${path}.tmp`, path);
};

/** Steps whose scalars are all in the event file; TensorBoard itself draws 1000 points of a tag. */
const allStepsUpTo = 10_000;

/**
 * Whether the event file has the scalars of a step: of each one up to 10,000, then of each 10th up to 100,000, of each
 * 100th up to a million, and so on. So a decade of steps has 9000 of them.
 */
export const isEventStep = (step: number): boolean => {
  let every = 1;
  while (step > allStepsUpTo * every) every *= 10;
  return step % every === 0;
};

/** Types of lines that come with each step. */
const isOfSteps = (type: Measurement["type"]): boolean =>
  type === "step" || type === "update" || type.startsWith("rank-");

/** Writes `metrics.jsonl` and TensorBoard events into the output folder of a run. */
export class MetricFiles implements MetricSink {
  private readonly path: string;
  private lines: number;
  private readonly events: EventFile;
  private readonly ownHistograms: HistogramsFile;

  private readonly log: Pick<MetricSink, "record" | "rewind"> | undefined;

  /**
   * @param fromStep steps that were done before; later lines of an earlier run are dropped. @param log is told each
   * line, too, and where the run goes back.
   */
  constructor(folder: string, fromStep: number, log?: Pick<MetricSink, "record" | "rewind">) {
    this.log = log;
    this.path = join(folder, metricsFile);
    keepUpTo(this.path, fromStep);
    this.lines = openSync(this.path, "a");
    this.events = new EventFile(folder);
    this.ownHistograms = new HistogramsFile(folder);
    this.ownHistograms.rewind(fromStep);
  }

  record(measurement: Measurement): void {
    writeSync(this.lines, `${JSON.stringify(measurement)}\n`);
    this.log?.record(measurement);
    const { type, step, ...quantities } = measurement;
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
    keepUpTo(this.path, step);
    this.lines = openSync(this.path, "a");
  }

  close(): void {
    closeSync(this.lines);
    this.events.close();
  }
}

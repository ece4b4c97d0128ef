import { appendFileSync, existsSync, renameSync } from "node:fs";
import { join } from "node:path";
import { copyLines } from "@skein/cli/node";
import type { ParameterHistograms } from "@skein/report";

/** File in the output folder of a run with histograms of weights and gradients, one line per parameter and step. */
export const histogramsFile = "histograms.jsonl";

/** A line of `histograms.jsonl`: histograms of a parameter, or the end of a step's histograms. */
export type HistogramsLine =
  | ({ readonly type: "parameter"; readonly step: number } & ParameterHistograms)
  | { readonly type: "complete"; readonly step: number; readonly parameters: number };

/** Writes `histograms.jsonl`. The file is created with the first histogram. */
export class HistogramsFile {
  private readonly path: string;
  private parameters = 0;

  constructor(folder: string) {
    this.path = join(folder, histogramsFile);
  }

  /** Removes histograms of `step` and later steps, because the run resumes from `step` and records them again. */
  rewind(step: number): void {
    this.parameters = 0;
    if (!existsSync(this.path)) return;
    copyLines(this.path, `${this.path}.tmp`, (text) => {
      try {
        return (JSON.parse(text) as HistogramsLine).step < step;
      } catch {
        return false; // the last line of a killed run may be incomplete
      }
    });
    renameSync(`${this.path}.tmp`, this.path);
  }

  /**
   * Appends the histograms of parameters after `step`. @param isLast Whether these are the last parameters of the step.
   */
  record(step: number, parameters: readonly ParameterHistograms[], isLast: boolean): void {
    this.parameters += parameters.length;
    const lines: HistogramsLine[] = parameters.map((one) => ({ type: "parameter", step, ...one }));
    if (isLast) {
      lines.push({ type: "complete", step, parameters: this.parameters });
      this.parameters = 0;
    }
    appendFileSync(this.path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  }
}

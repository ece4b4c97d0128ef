import { appendFileSync, existsSync, renameSync } from "node:fs";
import { join } from "node:path";
import type { ParameterHistograms } from "@skein/report";
import { copyLines } from "../files/copy-lines.ts";

/** In the output folder of a run: histograms of its weights and gradients, those of a parameter after a step a line. */
export const histogramsFile = "histograms.jsonl";

/** A line: of a parameter, or that all of a step are there. */
export type HistogramsLine =
  | ({ readonly type: "parameter"; readonly step: number } & ParameterHistograms)
  | { readonly type: "complete"; readonly step: number; readonly parameters: number };

/** Writes `histograms.jsonl`. Nothing is written, and no file made, before the first histogram. */
export class HistogramsFile {
  private readonly path: string;
  private parameters = 0;

  constructor(folder: string) {
    this.path = join(folder, histogramsFile);
  }

  /** Forget what was taken at `step` or later: the run goes on from there, and takes it again. */
  rewind(step: number): void {
    this.parameters = 0;
    if (!existsSync(this.path)) return;
    copyLines(this.path, `${this.path}.tmp`, (text) => {
      try {
        return (JSON.parse(text) as HistogramsLine).step < step;
      } catch {
        return false; // the last line of a killed run may be cut
      }
    });
    renameSync(`${this.path}.tmp`, this.path);
  }

  /** @param isLast whether all parameters of the step are there now. */
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

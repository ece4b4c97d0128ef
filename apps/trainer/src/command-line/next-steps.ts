import { dirname, join } from "node:path";
import { shellQuote } from "../console/shell-quote.ts";
import { metricsFile } from "../run-files/metrics.ts";
import { reportLine, resumeLine } from "../console/own-command.ts";

/**
 * What people may do with a run that is done, a line each.
 *
 * @param tracePath where its trace lies, if one was asked for and written.
 */
export const nextSteps = (output: string, totalSteps: number, tracePath: string | undefined): string[] => [
  "What next:",
  `  train longer    ${resumeLine(output)} --steps ${2 * totalSteps}`,
  `  see the run     ${reportLine(output)}`,
  `  watch runs      skein-train watch ${shellQuote(dirname(output))}`,
  `  see the curves  tensorboard --logdir ${shellQuote(output)}   (every step in numbers: ${join(output, metricsFile)})`,
  tracePath === undefined
    ? "  see the time    add --trace to a run; skein-train watch draws it, and so does https://ui.perfetto.dev"
    : `  see the time    open ${tracePath} at https://ui.perfetto.dev`,
];

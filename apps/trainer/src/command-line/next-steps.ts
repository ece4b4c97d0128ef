import { dirname, join } from "node:path";
import { reportLine, resumeLine, shellQuote } from "@skein/cli/node";
import { metricsFile } from "@skein/run-files/node";

/**
 * Returns suggested commands after a finished run, one per line.
 *
 * @param tracePath path of the trace file. Undefined: no trace was requested, or the trace was not written.
 */
export const nextSteps = (output: string, totalSteps: number, tracePath: string | undefined): string[] => [
  "Next steps:",
  `  train longer    ${resumeLine(output)} --steps ${2 * totalSteps}`,
  `  see the run     ${reportLine(output)}`,
  `  watch runs      skein-train watch ${shellQuote(dirname(output))}`,
  `  see the curves  tensorboard --logdir ${shellQuote(output)}   (every step in numbers: ${join(output, metricsFile)})`,
  tracePath === undefined
    ? "  see the time    add --trace to a run; skein-train watch draws it, and so does https://ui.perfetto.dev"
    : `  see the time    open ${tracePath} at https://ui.perfetto.dev`,
];

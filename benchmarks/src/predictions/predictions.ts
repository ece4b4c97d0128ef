import { runPageCommand } from "../report/page-command.ts";
import { predictionsPage } from "./page.ts";
import { findTableResults } from "./results.ts";

/** Runs the command line of the page. @returns the exit code. */
export const predictions = (args: readonly string[]): number =>
  runPageCommand(
    {
      name: "predictions",
      purpose: "Set the cost model beside published measurements: calibrate, hold out, predict what was not measured.",
      findResults: () => findTableResults((line) => process.stderr.write(`${line} …\n`)),
      format: predictionsPage,
    },
    args,
  );

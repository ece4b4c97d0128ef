import { runPageCommand } from "../report/page-command.ts";
import { kfacStagesPage } from "./page.ts";
import { findKfacStages } from "./results.ts";

/** Runs the command line that writes the page. @returns the exit code. */
export const kfacStages = (args: readonly string[]): number =>
  runPageCommand(
    {
      name: "kfac-stages",
      purpose:
        "Set the stage model of K-FAC's forms beside published stages: calibrate on two networks, predict others.",
      findResults: findKfacStages,
      format: kfacStagesPage,
    },
    args,
  );

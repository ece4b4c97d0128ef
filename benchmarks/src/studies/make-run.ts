import { machine } from "../report/page.ts";
import type { Result } from "./results-file.ts";
import { definitionOf, type Run } from "./run.ts";
import { train } from "./trainer.ts";

/** Trains a run. @returns the line for the results file. @throws Interrupted after SIGINT or SIGTERM. */
export const makeRun = async (run: Run, take: number, commit: string): Promise<Result> => {
  const began = performance.now();
  const outcome = await train(run);
  return {
    name: run.name,
    definition: definitionOf(run),
    ...(take > 0 && { take }),
    at: new Date().toISOString(),
    machine: machine(),
    seed: run.job["seed"] as number,
    commit,
    seconds: (performance.now() - began) / 1000,
    job: run.job,
    outcome,
  };
};

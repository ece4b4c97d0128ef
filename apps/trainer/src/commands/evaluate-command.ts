import { commandAction, exitCodes, type GlobalOptions, writeStderr, writeStdout } from "@skein/cli/node";
import { meshOf, numBatchParts } from "@skein/job/node";
import { flatFigures, formatFigures } from "@skein/run-files/node";
import {
  DamagedSamples,
  evaluatedOn,
  evaluationFigures,
  evaluationOrder,
  type EvaluationSums,
  makeEvaluation,
  totalSums,
} from "@skein/step/node";
import type { Command } from "commander";
import { mapTree, type NdArray } from "@skein/tensor-core";
import { type DamagedImage, readEvaluationBatches } from "@skein/data/node";
import { openSingleRankBackend } from "../backend/single-rank-backend.ts";
import { checkpointOption } from "../command-line/number-option.ts";
import { recordedJob } from "../output-folder/output-folder.ts";
import { announceCode } from "../command-line/announce-code.ts";
import { openSavedRun, type SavedRun } from "../output-folder/saved-run.ts";

interface EvaluateOptions extends GlobalOptions {
  readonly checkpoint?: string;
}

/**
 * Evaluates a checkpoint of a run on the held-out samples. The samples are split as among the ranks of the run, so that
 * the sums are bitwise identical to the sums of the run. If the run sharded the model over ranks, the shards are
 * merged, and results may differ by rounding.
 *
 * @param note receives a line for the user about each damaged image that was replaced.
 */
export const evaluateRun = async (
  { job, prepared, params, state }: SavedRun,
  note: (line: string) => void,
): Promise<EvaluationSums> => {
  const found = new DamagedSamples();
  const damaged = (image: DamagedImage): void => {
    const line = found.add(image);
    if (line !== undefined) note(line);
  };
  const { backend, close } = await openSingleRankBackend(job);
  try {
    const { model, data } = prepared;
    const evaluation = makeEvaluation(model, backend, { mesh: meshOf(prepared.job), communicators: {} });
    const [onDevice, own] = [params, state].map((tree) => mapTree(tree, (array: NdArray) => backend.upload(array)));
    const numParts = numBatchParts(job);
    const parts: EvaluationSums[] = [];
    for (let rank = 0; rank < numParts; rank++) {
      const order = evaluationOrder(job, model, data.test.count, { rank, worldSize: numParts });
      const batches = readEvaluationBatches(data.test, { ...order, damaged });
      parts.push(await evaluation({ params: onDevice, model: own }, batches));
    }
    return totalSums(parts);
  } finally {
    await close();
  }
};

/**
 * Implements `skein-train evaluate`: evaluates a checkpoint of a run.
 *
 * @returns the exit code.
 * @throws CheckpointError, and errors from preparing the job.
 */
export const evaluateCommand = async (folder: string, options: EvaluateOptions): Promise<number> => {
  announceCode([recordedJob(folder)], options);
  const run = await openSavedRun(folder, checkpointOption(options.checkpoint));
  const { data, model } = run.prepared;
  const sums = await evaluateRun(run, (line) => writeStderr(`${line}\n`));
  const figures = evaluationFigures(data.predicts, sums, model.metrics);
  writeStdout(
    options.json === true
      ? `${JSON.stringify({ step: run.step, ...flatFigures(figures) })}\n`
      : `step ${run.step}: ${formatFigures(figures, evaluatedOn(run.job.data))}\n`,
  );
  return exitCodes.ok;
};

/** Adds `evaluate` to the command line. `finish` receives the exit code. */
export const addEvaluateCommand = (program: Command, finish: (code: number) => void): void => {
  program
    .command("evaluate")
    .description("evaluate a checkpoint of a run on its held-out samples")
    .argument("<folder>", "output folder of the run")
    .option("--checkpoint <step>", "step of the checkpoint, or best; default: the newest")
    .addHelpText("after", "\nExample:\n  skein-train evaluate runs/mnist/1")
    .action(commandAction(finish, evaluateCommand));
};

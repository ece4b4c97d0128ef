import { join } from "node:path";
import {
  type Checkpoint,
  checkpointNames,
  checkpointSecret,
  checkpointsFolder,
  folderName,
  maxRemoved,
  newestCheckpoint,
  readCheckpoint,
  shardFilesIn,
  sharedFile,
  stepOfName,
  wholeTensors,
} from "@skein/checkpoints/node";
import { CheckpointError, DamagedCheckpointError, nodeFiles } from "@skein/cli/node";
import type { Job } from "@skein/job/node";
import { withParameters } from "@skein/step/node";
import { flattenTree, leafPaths, type NdArray, unflattenTree } from "@skein/tensor-core";
import { formatSpec, sameSpec } from "@skein/tensor-core/backend";
import { recordedJob } from "./output-folder.ts";
import { prepare } from "../preparation/prepare.ts";
import type { Prepared } from "../preparation/prepared.ts";

/** A checkpoint of a run with the trained weights of all ranks merged. */
export interface SavedRun {
  /** Job as recorded when the run began, with the run's number of ranks and mesh. */
  readonly job: Job;
  /** The job prepared for a single rank that holds all shards. */
  readonly prepared: Prepared;
  readonly step: number;
  /** Folder of the opened checkpoint. */
  readonly folder: string;
  readonly params: unknown;
  /** Model state, such as running statistics. */
  readonly state: unknown;
}

/** Selects a checkpoint of a run: the checkpoint of a step, or the checkpoint with the best evaluation. */
export type CheckpointChoice = number | "best";

/**
 * Returns the step of the best evaluation, as recorded in the newest checkpoint.
 *
 * @throws CheckpointError if the run does not compare evaluations.
 */
const bestStep = ({ folder, manifest }: Checkpoint): number => {
  if (manifest.best !== undefined) return manifest.best.step;
  throw new CheckpointError(
    `${folder} does not record a best evaluation: the run does not compare evaluations; give the step of a checkpoint, or train with checkpoint: {best: true}`,
  );
};

const checkpointOf = (output: string, which: CheckpointChoice | undefined): Checkpoint => {
  const secret = checkpointSecret(process.env);
  const newest = (): Checkpoint => newestCheckpoint(nodeFiles, output, () => undefined, secret);
  if (which === undefined) return newest();
  const parent = checkpointsFolder(output);
  for (let removed = 1; ; removed++) {
    const step = which === "best" ? bestStep(newest()) : which;
    try {
      return readCheckpoint(nodeFiles, join(parent, folderName(step)), secret);
    } catch (error) {
      const names = checkpointNames(nodeFiles, output);
      if (!(error instanceof DamagedCheckpointError) || names.includes(folderName(step))) throw error;
      // A running run removes its best checkpoint after a better evaluation, so the search is repeated.
      if (which === "best" && removed < maxRemoved) continue;
      throw new CheckpointError(
        `${parent} has no checkpoint of step ${step}; ${names.length === 0 ? "it has no checkpoints" : `it has checkpoints of steps ${names.map(stepOfName).join(", ")}`}`,
        { cause: error },
      );
    }
  }
};

/**
 * Returns the tree `name` of the training state in a checkpoint, with the shards of all ranks merged.
 *
 * @param like A tree with the same structure and specs.
 * @throws CheckpointError if an array is missing, or does not match the model of the job.
 */
export const savedTree = (
  name: "params" | "average" | "model",
  like: unknown,
  { whole, checkpoint: { folder, tensors } }: Pick<Prepared, "whole"> & { readonly checkpoint: Checkpoint },
): unknown => {
  const arrayOf = wholeTensors(
    tensors.get(sharedFile) ?? new Map<string, NdArray>(),
    shardFilesIn(tensors).map(({ cuts, names }) => ({ cuts, files: names.map((part) => tensors.get(part)!) })),
  );
  return unflattenTree(
    flattenTree(like).structure,
    leafPaths({ [name]: like }).map((path) => {
      const [array, spec] = [arrayOf(path), whole.get(path)!];
      if (array !== undefined && sameSpec(array, spec)) return array;
      throw new CheckpointError(
        `${folder}: ${path} is ${array === undefined ? "missing" : formatSpec(array)}, but the model of the run's job has ${formatSpec(spec)}; use the checkpoint of another run`,
      );
    }),
  );
};

/**
 * Returns the trained parameters in a checkpoint: the moving average of the parameters if the run computes one,
 * otherwise the parameters after the last step.
 *
 * @throws CheckpointError under the conditions of `savedTree`.
 */
export const savedParams = ({ job, params, trained, whole }: Prepared, checkpoint: Checkpoint): unknown => {
  const last = savedTree("params", params, { whole, checkpoint });
  return job.average === undefined ? last : withParameters(last, savedTree("average", trained, { whole, checkpoint }));
};

/**
 * Replaces objects of the program that only training needs by defaults, so that the job can be opened without the
 * program.
 */
const withoutTraining = ({ optimizer, compression, learningRate: { schedule, ...rate }, ...job }: Job): Job => ({
  ...job,
  optimizer: optimizer.kind === "program" ? { kind: "sgd", weightDecay: 0 } : optimizer,
  compression: compression.kind === "program" ? { kind: "identity" } : compression,
  learningRate: schedule?.kind === "program" ? rate : { ...rate, ...(schedule && { schedule }) },
});

/**
 * Opens the saved model of a run.
 *
 * @param which Checkpoint to open. Default: the newest valid checkpoint.
 * @throws CheckpointError, DamagedCheckpointError, and errors from preparing the job.
 */
export const openSavedRun = async (output: string, which?: CheckpointChoice): Promise<SavedRun> => {
  const job = recordedJob(output);
  const checkpoint = checkpointOf(output, which);
  const alone = { ranks: 1, mesh: { expert: 1, tensor: 1 }, zero: 0, overlap: "none" } as const;
  const prepared = await prepare({ ...withoutTraining(job), ...alone });
  return {
    job,
    prepared,
    step: checkpoint.manifest.step,
    folder: checkpoint.folder,
    params: savedParams(prepared, checkpoint),
    state: savedTree("model", prepared.modelState, { whole: prepared.whole, checkpoint }),
  };
};

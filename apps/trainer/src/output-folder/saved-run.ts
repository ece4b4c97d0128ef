import { join } from "node:path";
import { flattenTree, leafPaths, type NdArray, unflattenTree } from "@skein/tensor-core";
import { formatSpec, sameSpec } from "@skein/tensor-core/backend";
import {
  type Checkpoint,
  checkpointNames,
  maxRemoved,
  newestCheckpoint,
  readCheckpoint,
  sharedFile,
  stepOfName,
} from "../checkpoint/checkpoint.ts";
import { checkpointSecret } from "../checkpoint/checkpoint-manifest.ts";
import { checkpointsFolder, folderName } from "../checkpoint/checkpoint-part.ts";
import { shardFilesIn, wholeTensors } from "../checkpoint/checkpoint-shards.ts";
import { CheckpointError, DamagedCheckpointError } from "../errors.ts";
import { nodeFiles } from "../files/files.ts";
import { withParameters } from "../building/frozen.ts";
import type { Job } from "../job/job.ts";
import { recordedJob } from "./output-folder.ts";
import { prepare, type Prepared } from "../preparation/prepare.ts";

/** What a run has learned, whole, whoever of its ranks had which part. */
export interface SavedRun {
  /** As it ran. */
  readonly job: Job;
  /** The same for one rank, which has everything. */
  readonly prepared: Prepared;
  readonly step: number;
  /** Folder of the checkpoint. */
  readonly folder: string;
  readonly params: unknown;
  /** What the model moves itself. */
  readonly state: unknown;
}

/** A checkpoint of a run: that of a step, or of the evaluation with the lowest loss. */
export type WhichCheckpoint = number | "best";

/** The step of the best evaluation, by the newest checkpoint. @throws CheckpointError if the run compares none. */
const bestStep = ({ folder, manifest }: Checkpoint): number => {
  if (manifest.best !== undefined) return manifest.best.step;
  throw new CheckpointError(
    `${folder} does not tell which evaluation was the best: the run compares none; ask for the checkpoint of a step, or train with checkpoint: {best: true}`,
  );
};

const checkpointOf = (output: string, which: WhichCheckpoint | undefined): Checkpoint => {
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
      // A running run removes the checkpoint of an evaluation once there is a better one.
      if (which === "best" && removed < maxRemoved) continue;
      throw new CheckpointError(
        `${parent} holds no checkpoint of step ${step}; ${names.length === 0 ? "it holds none" : `it holds those of steps ${names.map(stepOfName).join(", ")}`}`,
        { cause: error },
      );
    }
  }
};

/**
 * The part of a state that a checkpoint holds under a name, as a whole, whoever shared it out.
 *
 * @param like a tree of the same structure.
 * @throws CheckpointError where an array is not there, or not what the model of the job has.
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
        `${folder}: ${path} is ${array === undefined ? "not there" : formatSpec(array)}, but the model of the run's job has ${formatSpec(spec)}; take the checkpoint of another run`,
      );
    }),
  );
};

/**
 * What a run has learned, of a checkpoint of it: the means of its parameters where it keeps such, else the last ones.
 *
 * @throws CheckpointError as `savedTree`.
 */
export const savedParams = ({ job, params, trained, whole }: Prepared, checkpoint: Checkpoint): unknown => {
  const last = savedTree("params", params, { whole, checkpoint });
  return job.average === undefined ? last : withParameters(last, savedTree("average", trained, { whole, checkpoint }));
};

/** The same job with others in place of parts that a program gave and that only training asks for. */
const withoutTraining = ({ optimizer, compression, learningRate: { schedule, ...rate }, ...job }: Job): Job => ({
  ...job,
  optimizer: optimizer.kind === "program" ? { kind: "sgd", weightDecay: 0 } : optimizer,
  compression: compression.kind === "program" ? { kind: "identity" } : compression,
  learningRate: schedule?.kind === "program" ? rate : { ...rate, ...(schedule && { schedule }) },
});

/**
 * Open the model of a run as it was saved.
 *
 * @param which checkpoint. Default: the newest sound one.
 * @throws CheckpointError, DamagedCheckpointError, and what preparing the job throws.
 */
export const openSavedRun = async (output: string, which?: WhichCheckpoint): Promise<SavedRun> => {
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

import { join } from "node:path";
import { flattenTree, leafPaths, type NdArray, unflattenTree } from "@skein/tensor-core";
import { formatSpec, sameSpec } from "@skein/tensor-core/backend";
import { type Checkpoint, newestCheckpoint, readCheckpoint, sharedFile } from "./checkpoint.ts";
import { checkpointSecret } from "./checkpoint-manifest.ts";
import { checkpointsFolder, folderName } from "./checkpoint-part.ts";
import { shardFilesIn, wholeTensors } from "./checkpoint-shards.ts";
import { CheckpointError } from "./errors.ts";
import { nodeFiles } from "./files.ts";
import type { Job } from "./job.ts";
import { savedJob } from "./output-folder.ts";
import { prepare, type Prepared } from "./prepare.ts";
import { buildParts, stateSpecs } from "./train-state.ts";

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

const checkpointOf = (output: string, step: number | undefined): Checkpoint => {
  const secret = checkpointSecret(process.env);
  return step === undefined
    ? newestCheckpoint(nodeFiles, output, () => undefined, secret)
    : readCheckpoint(nodeFiles, join(checkpointsFolder(output), folderName(step)), secret);
};

/** A tree like that of `specs`, from the arrays of a checkpoint. @throws CheckpointError where one does not fit. */
const treeOf = (
  name: "params" | "model",
  specs: unknown,
  arrayOf: (path: string) => NdArray | undefined,
  folder: string,
): unknown => {
  const { leaves, structure } = flattenTree<NdArray>(specs);
  return unflattenTree(
    structure,
    leafPaths({ [name]: specs }).map((path, i) => {
      const [array, spec] = [arrayOf(path), leaves[i]!];
      if (array !== undefined && sameSpec(array, spec)) return array;
      throw new CheckpointError(
        `${folder}: ${path} is ${array === undefined ? "not there" : formatSpec(array)}, but the model of the run's job has ${formatSpec(spec)}; take the checkpoint of another run`,
      );
    }),
  );
};

/**
 * Open the model of a run as it was saved.
 *
 * @param step of the checkpoint. Default: the newest sound one.
 * @throws CheckpointError, DamagedCheckpointError, and what preparing the job throws.
 */
export const openSavedRun = async (output: string, step?: number): Promise<SavedRun> => {
  const job = await savedJob(output, []);
  const checkpoint = checkpointOf(output, step);
  const { folder, manifest, tensors } = checkpoint;
  const alone = { ...job, ranks: 1, mesh: { expert: 1, tensor: 1 }, zero: 0, overlap: "none" } as const;
  const prepared = await prepare(alone);
  const { job: one, model, totalSteps, data } = prepared;
  const specs = stateSpecs(buildParts({ job: one, model, totalSteps, train: data.train }));
  const arrayOf = wholeTensors(
    tensors.get(sharedFile) ?? new Map<string, NdArray>(),
    shardFilesIn(tensors).map(({ cuts, names }) => ({ cuts, files: names.map((name) => tensors.get(name)!) })),
  );
  return {
    job,
    prepared,
    step: manifest.step,
    folder,
    params: treeOf("params", specs.params, arrayOf, folder),
    state: treeOf("model", specs.model, arrayOf, folder),
  };
};

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  type Checkpoint,
  commitCheckpoint,
  type Manifest,
  newestCheckpoint,
  partContent,
  rankFile,
  sharedFile,
  writePart,
} from "@skein/checkpoints/node";
import { type Files, nodeFiles, sha256 } from "@skein/cli/node";
import { NdArray } from "@skein/tensor-core";

/** Steps of the two attacked checkpoints. */
const steps = [500, 540] as const;

const save = (output: string, step: number): void => {
  const tensors = new Map([
    ["params.dense.weight", NdArray.from([step, 2, 3, 4], [2, 2])],
    ["step", NdArray.scalar(step, "u32")],
  ]);
  const files = [sharedFile, rankFile(0)].map((name) => writePart(nodeFiles, output, step, name, partContent(tensors)));
  const manifest: Manifest = {
    format: "skein-checkpoint",
    version: 2,
    step,
    data: { epoch: Math.floor(step / 100), step: step % 100, stepsPerEpoch: 100 },
    worldSize: 2,
    modelHash: sha256("model"),
    jobHash: sha256("job"),
    files,
  };
  commitCheckpoint(nodeFiles, output, manifest, { newest: 3 });
};

/** Original files of the newer of two checkpoints below `output`, and a check of altered files. */
interface SavedCheckpoint {
  readonly files: ReadonlyMap<string, Uint8Array>;
  /**
   * Checks the checkpoint from which the trainer resumes if the file `name` contains `bytes`.
   * @returns a description of the damage, or undefined.
   */
  harmOf(name: string, bytes: Uint8Array): string | undefined;
}

const newest = (
  files: Files,
  output: string,
): { readonly checkpoint: Checkpoint; readonly reasons: readonly string[] } => {
  const reasons: string[] = [];
  return { checkpoint: newestCheckpoint(files, output, (reason) => reasons.push(reason)), reasons };
};

/** Saves two checkpoints. If the newer checkpoint is damaged, the trainer must skip it and report the damage once. */
export const saveCheckpoints = (output: string): SavedCheckpoint => {
  for (const step of steps) save(output, step);
  const sound = newest(nodeFiles, output);
  if (sound.checkpoint.manifest.step !== steps[1])
    throw new Error(`the sound checkpoint is not found: ${sound.reasons.join("; ")}`);
  const folder = sound.checkpoint.folder;
  return {
    files: new Map(readdirSync(folder).map((name) => [name, new Uint8Array(readFileSync(join(folder, name)))])),
    harmOf: (name, bytes) => {
      // Uses the trainer's own reader, on a file system where one file is replaced.
      const altered: Files = {
        ...nodeFiles,
        read: (path, most) => (path === join(folder, name) ? bytes : nodeFiles.read(path, most)),
      };
      try {
        const { checkpoint, reasons } = newest(altered, output);
        if (checkpoint.manifest.step !== steps[0]) return "it was trained on";
        return reasons.length === 1 ? undefined : `it was reported ${reasons.length} times`;
      } catch (error) {
        return `no checkpoint was found: ${(error as Error).message}`;
      }
    },
  };
};

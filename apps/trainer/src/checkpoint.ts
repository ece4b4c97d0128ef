import { basename, join } from "node:path";
import { formatSpec, type NdArray, readSafetensors, sameSpec, type TensorSpec, writeSafetensors } from "@skein/tensor-core";
import { decodeManifest, encodeManifest, type Manifest, ManifestFault, type SavedFile, sha256 } from "./checkpoint-manifest.ts";
import { CheckpointError, DamagedCheckpointError } from "./errors.ts";
import type { Files } from "./files.ts";

export type NamedTensors = ReadonlyMap<string, NdArray>;

/** The file with what all ranks share: parameters, optimizer state, random key. */
export const sharedFile = "shared.safetensors";

/** Among what ranks share: the number of steps done. */
const stepTensor = "step";

/** The file with what a rank has alone: compressor residuals. */
export const rankFile = (rank: number): string => `rank-${rank}.safetensors`;

const folderName = (step: number): string => `step-${String(step).padStart(8, "0")}`;
const temporaryPrefix = ".writing-";
const temporaryName = (step: number): string => `${temporaryPrefix}${folderName(step)}`;
const manifestName = "manifest.json";

export const checkpointsFolder = (output: string): string => join(output, "checkpoints");

/** What the file says, as a stable text: hash it to tell one model from another. */
export const specsText = (specs: ReadonlyMap<string, TensorSpec>): string =>
  [...specs]
    .map(([name, spec]) => `${name} ${formatSpec(spec)}\n`)
    .sort()
    .join("");

/** Write one file of a checkpoint that is being made. Each rank calls it for its own. */
export const writePart = (files: Files, output: string, step: number, name: string, tensors: NamedTensors): SavedFile => {
  const folder = join(checkpointsFolder(output), temporaryName(step));
  files.makeFolder(folder);
  const bytes = writeSafetensors(tensors);
  files.writeDurably(join(folder, name), bytes);
  return { name, bytes: bytes.length, sha256: sha256(bytes) };
};

/** Throw away checkpoints that were not finished: after a failure, or left by a killed run. */
export const discardPartial = (files: Files, output: string): void => {
  const parent = checkpointsFolder(output);
  for (const name of files.list(parent)) if (name.startsWith(temporaryPrefix)) files.remove(join(parent, name));
};

/**
 * Finish a checkpoint when all parts are written: manifest, fsync of the folder, rename, fsync of the parent. A crash at any moment leaves
 * either the whole checkpoint or none under its final name. Then removes all but the newest `keep`.
 *
 * @param secret signs the manifest.
 * @returns the checkpoint's folder.
 */
export const commitCheckpoint = (files: Files, output: string, manifest: Manifest, keep: number, secret?: string): string => {
  const parent = checkpointsFolder(output);
  const temporary = join(parent, temporaryName(manifest.step));
  const final = join(parent, folderName(manifest.step));
  files.writeDurably(join(temporary, manifestName), encodeManifest(manifest, secret));
  files.syncFolder(temporary);
  files.remove(final); // the same step, saved before an interruption
  files.rename(temporary, final);
  files.syncFolder(parent);
  for (const name of checkpointNames(files, output).slice(keep)) files.remove(join(parent, name));
  return final;
};

/** Newest first. */
const checkpointNames = (files: Files, output: string): string[] =>
  files
    .list(checkpointsFolder(output))
    .filter((name) => /^step-\d{8,}$/.test(name))
    .sort((a, b) => Number(b.slice(5)) - Number(a.slice(5)));

/** A sound checkpoint, its bytes checked against their hashes. */
export interface Checkpoint {
  readonly folder: string;
  readonly manifest: Manifest;
  /** Tensors by file name. */
  readonly tensors: ReadonlyMap<string, NamedTensors>;
}

/** The tensors of one file of a checkpoint, its bytes checked. @throws DamagedCheckpointError */
export const readPart = (files: Files, folder: string, { name, bytes, sha256: expected }: SavedFile): NamedTensors => {
  const path = join(folder, name);
  let content: Uint8Array;
  try {
    content = files.read(path);
  } catch (cause) {
    throw new DamagedCheckpointError(`${path} cannot be read`, { cause });
  }
  if (content.length !== bytes)
    throw new DamagedCheckpointError(`${path} has ${content.length} bytes, but its manifest says ${bytes}: it is torn`);
  if (sha256(content) !== expected) throw new DamagedCheckpointError(`${path} does not have the SHA-256 of its manifest: it was altered`);
  return readSafetensors(content).tensors;
};

const readManifest = (files: Files, path: string, secret: string | undefined): Manifest => {
  try {
    return decodeManifest(files.read(path), secret);
  } catch (cause) {
    throw new DamagedCheckpointError(`${path} ${cause instanceof ManifestFault ? cause.message : "is missing or damaged"}`, { cause });
  }
};

const readChecked = (files: Files, folder: string, secret: string | undefined): Checkpoint => {
  const path = join(folder, manifestName);
  const manifest = readManifest(files, path, secret);
  const { step } = manifest;
  if (basename(folder) !== folderName(step)) throw new DamagedCheckpointError(`${path} says step ${step}, but stands in ${folder}`);
  const tensors = new Map(manifest.files.map((file) => [file.name, readPart(files, folder, file)]));
  const counted = tensors.get(sharedFile)?.get(stepTensor)?.toNumbers()[0];
  if (counted !== step)
    throw new DamagedCheckpointError(`${path} says step ${step}, but ${stepTensor} of ${sharedFile} is ${counted ?? "not there"}`);
  return { folder, manifest, tensors };
};

/** Whether a run has saved anything yet, sound or not. */
export const hasCheckpoint = (files: Files, output: string): boolean => checkpointNames(files, output).length > 0;

/** The step of the newest checkpoint of a run, sound or not; 0 where there is none. */
export const newestStep = (files: Files, output: string): number => Number(checkpointNames(files, output)[0]?.slice(5) ?? 0);

/**
 * The newest sound checkpoint of a run.
 *
 * @param onRejected is told each newer one that is torn or altered, and why.
 * @param secret where given, one that it has not signed is passed over too.
 * @throws CheckpointError when there is none, DamagedCheckpointError when none is sound.
 */
export const newestCheckpoint = (files: Files, output: string, onRejected: (reason: string) => void, secret?: string): Checkpoint => {
  const names = checkpointNames(files, output);
  const reasons: string[] = [];
  for (const name of names) {
    try {
      return readChecked(files, join(checkpointsFolder(output), name), secret);
    } catch (error) {
      if (!(error instanceof DamagedCheckpointError)) throw error;
      onRejected(error.message);
      reasons.push(error.message);
    }
  }
  const parent = checkpointsFolder(output);
  if (names.length === 0)
    throw new CheckpointError(
      `no checkpoint to resume from: ${parent} holds none; name the output folder of a run, or start anew with skein-train run`,
    );
  throw new DamagedCheckpointError(
    `no checkpoint to resume from: ${parent} holds ${names.length}, but none is sound (${reasons.join("; ")}); see that its disk is there and whole, put a copy back, or start anew with skein-train run`,
  );
};

/** How many differences a message lists. */
const listed = 5;

/**
 * Check that a file's tensors are those that the job's model has.
 * @throws CheckpointError that lists the first tensors that differ.
 */
export const requireSameTensors = (saved: NamedTensors, expected: ReadonlyMap<string, TensorSpec>, checkpoint: string): void => {
  const isParameter = (name: string): number => (name.startsWith("params.") ? 0 : 1); // they say most about the model, so they come first
  const names = [...new Set([...expected.keys(), ...saved.keys()])].sort((a, b) => isParameter(a) - isParameter(b));
  const differences = names.flatMap((name) => {
    const [here, there] = [expected.get(name), saved.get(name)];
    if (here === undefined) return [`  ${name}: ${formatSpec(there!)} in the checkpoint, not in the job's model`];
    if (there === undefined) return [`  ${name}: ${formatSpec(here)} in the job's model, not in the checkpoint`];
    return sameSpec(here, there) ? [] : [`  ${name}: ${formatSpec(there)} in the checkpoint, ${formatSpec(here)} in the job's model`];
  });
  if (differences.length === 0) return;
  const rest = differences.length > listed ? [`  and ${differences.length - listed} more`] : [];
  throw new CheckpointError(
    [
      `${checkpoint} is of another model or optimizer; ${differences.length} of ${Math.max(saved.size, expected.size)} tensors differ; resume with the job that wrote it:`,
      ...differences.slice(0, listed),
      ...rest,
    ].join("\n"),
  );
};

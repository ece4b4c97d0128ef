import { basename, join } from "node:path";
import {
  CheckpointError,
  DamagedCheckpointError,
  describeError,
  type Files,
  isShortage,
  sha256,
} from "@skein/cli/node";
import { type NdArray, readSafetensors, type TensorSpec, layoutSafetensors } from "@skein/tensor-core";
import { formatSpec, sameSpec } from "@skein/tensor-core/backend";
import { decodeManifest, encodeManifest, type Manifest, ManifestFault } from "./checkpoint-manifest.ts";
import { checkpointsFolder, folderName, type SavedFile, temporaryFolder, temporaryPrefix } from "./checkpoint-part.ts";

export type NamedTensors = ReadonlyMap<string, NdArray>;

/** Name of the file with the tensors that all ranks share: parameters, optimizer state, random key. */
export const sharedFile = "shared.safetensors";

/** Name of the shared tensor that contains the number of completed steps. */
const stepTensor = "step";

/** Returns the name of the file with the tensors of a single rank, such as compressor residuals. */
export const rankFile = (rank: number): string => `rank-${rank}.safetensors`;

/** Folder name prefix of a checkpoint that is being replaced by a new checkpoint of the same step. */
const replacedPrefix = ".replaced-";
const manifestName = "manifest.json";
/**
 * Maximum size of a manifest in bytes: enough for the names and hashes of files of 100,000 ranks, and a plan with as
 * many buckets.
 */
const maxManifestBytes = 64 * 2 ** 20;

/** Formats specs as text whose hash identifies a model. The order of the specs does not affect the text. */
export const specsText = (specs: ReadonlyMap<string, TensorSpec>): string =>
  [...specs]
    .map(([name, spec]) => `${name} ${formatSpec(spec)}\n`)
    .sort()
    .join("");

/**
 * Returns the content of a file with the given tensors, as consecutive byte arrays: the header, then the memory of each
 * tensor.
 */
export const partContent = (tensors: NamedTensors): Uint8Array<ArrayBuffer>[] => {
  const { head, header } = layoutSafetensors(tensors);
  return [head, ...header.entries.map(({ name }) => tensors.get(name)!.bytes() as Uint8Array<ArrayBuffer>)];
};

/**
 * Requires that the files reported by ranks are visible to the process that writes the manifest.
 *
 * @throws DamagedCheckpointError
 */
const requireParts = (files: Files, folder: string, { step, files: parts }: Manifest): void => {
  for (const { name, bytes } of parts) {
    const path = join(folder, name);
    let found: number;
    try {
      found = files.size(path);
    } catch (cause) {
      throw new DamagedCheckpointError(
        `the checkpoint of step ${step} was abandoned: ${path} was written by a rank, but cannot be read here (${(cause as NodeJS.ErrnoException).code}); the output folder must be shared by all machines of the run`,
        { cause },
      );
    }
    if (found !== bytes)
      throw new DamagedCheckpointError(
        `the checkpoint of step ${step} was abandoned: ${path} has ${found} bytes here, but its rank wrote ${bytes}; check the disk that the machines of the run share`,
      );
  }
};

/** Checkpoints of a run to keep: the newest `newest` checkpoints, and the checkpoint of step `step`. */
export interface KeptCheckpoints {
  readonly newest: number;
  readonly step?: number | undefined;
}

/**
 * Finishes a checkpoint after all its files are written: writes the manifest, syncs the folder, renames the folder,
 * syncs the parent folder. A crash at any time leaves either the complete checkpoint or nothing under its final name,
 * and never removes an earlier checkpoint of the same step. Then removes all checkpoints except those to keep.
 *
 * Cost: each file is opened to get its size, but not read. When the run resumes, all files are read and hashed.
 *
 * @param secret secret that signs the manifest.
 * @returns the checkpoint's folder.
 * @throws DamagedCheckpointError if a file is missing.
 */
export const commitCheckpoint = (
  files: Files,
  output: string,
  manifest: Manifest,
  kept: KeptCheckpoints,
  secret?: string,
): string => {
  const parent = checkpointsFolder(output);
  const temporary = temporaryFolder(output, manifest.step);
  const name = folderName(manifest.step);
  const [final, replaced] = [join(parent, name), join(parent, `${replacedPrefix}${name}`)];
  requireParts(files, temporary, manifest);
  files.writeDurably(join(temporary, manifestName), [encodeManifest(manifest, secret)]);
  files.syncFolder(temporary);
  // The same step may have been saved before an interruption. Folders cannot be swapped atomically. Until the new
  // folder has its final name, the old folder has a name that `checkpointFolders` and `discardPartial` recognize.
  const isReplacement = files.list(parent).includes(name);
  if (isReplacement) files.rename(final, replaced);
  files.rename(temporary, final);
  files.syncFolder(parent);
  if (isReplacement) files.remove(replaced);
  for (const old of checkpointNames(files, output).slice(kept.newest))
    if (stepOfName(old) !== kept.step) files.remove(join(parent, old));
  return final;
};

/**
 * Cleans up the checkpoints of a run after a failure or a kill: removes unfinished checkpoints, and restores the name
 * of a replaced checkpoint whose successor is unfinished. Only the process that locks the output folder may call this
 * function, because it would remove the files of a running `commitCheckpoint`.
 */
export const discardPartial = (files: Files, output: string): void => {
  const parent = checkpointsFolder(output);
  const names = files.list(parent);
  for (const unfinished of names.filter((name) => name.startsWith(temporaryPrefix)))
    files.remove(join(parent, unfinished));
  for (const replaced of names.filter((name) => name.startsWith(replacedPrefix))) {
    const name = replaced.slice(replacedPrefix.length);
    if (names.includes(name)) files.remove(join(parent, replaced));
    else files.rename(join(parent, replaced), join(parent, name));
  }
};

/** Returns the step of a checkpoint from the name of its folder. */
export const stepOfName = (name: string): number => Number(name.slice(5));

/** Returns the names of a run's checkpoints, newest first. */
export const checkpointNames = (files: Files, output: string): string[] =>
  files
    .list(checkpointsFolder(output))
    .filter((name) => /^step-\d{8,}$/.test(name))
    .sort((a, b) => stepOfName(b) - stepOfName(a));

/**
 * Returns the names of the checkpoint folders of a run, newest first. Includes checkpoints that are being replaced, or
 * were being replaced when the run was killed.
 */
const checkpointFolders = (files: Files, output: string): string[] => {
  const names = new Set(checkpointNames(files, output));
  const replaced = files
    .list(checkpointsFolder(output))
    .filter((name) => name.startsWith(replacedPrefix) && !names.has(nameIn(name)));
  return [...names, ...replaced].sort((a, b) => stepOfName(nameIn(b)) - stepOfName(nameIn(a)));
};

/** Returns the name of a checkpoint from its folder's name, without the prefix of a replaced checkpoint. */
const nameIn = (folder: string): string =>
  folder.startsWith(replacedPrefix) ? folder.slice(replacedPrefix.length) : folder;

/** A valid checkpoint. All hashes are verified. */
export interface Checkpoint {
  readonly folder: string;
  readonly manifest: Manifest;
  /** Tensors by file name. */
  readonly tensors: ReadonlyMap<string, NamedTensors>;
}

/** Error for a checkpoint file that does not match the manifest. */
class DamagedPartError extends DamagedCheckpointError {
  override name = "DamagedPartError";
}

/** Reads the tensors of one file of a checkpoint and verifies its hash. @throws DamagedCheckpointError */
export const readPart = (files: Files, folder: string, { name, bytes, sha256: expected }: SavedFile): NamedTensors => {
  const path = join(folder, name);
  let content: Uint8Array;
  try {
    content = files.read(path, bytes);
  } catch (cause) {
    if (isShortage(describeError(cause))) throw cause; // a resource shortage, not a fault of the file
    throw new DamagedPartError(
      `${path} cannot be read as the ${bytes} bytes of its manifest: ${(cause as Error).message}`,
      {
        cause,
      },
    );
  }
  if (content.length !== bytes)
    throw new DamagedPartError(
      `${path} has ${content.length} bytes, but its manifest says ${bytes}: the file is truncated`,
    );
  if (sha256(content) !== expected)
    throw new DamagedPartError(`${path} does not have the SHA-256 of its manifest: the file was altered`);
  return readSafetensors(content).tensors;
};

const readManifest = (files: Files, path: string, secret: string | undefined): Manifest => {
  try {
    return decodeManifest(files.read(path, maxManifestBytes), secret);
  } catch (cause) {
    if (isShortage(describeError(cause))) throw cause;
    throw new DamagedCheckpointError(
      `${path} ${cause instanceof ManifestFault ? cause.message : "is missing or damaged"}`,
      { cause },
    );
  }
};

/** Reads the checkpoint in a folder and verifies the hashes of all files. @throws DamagedCheckpointError */
export const readCheckpoint = (files: Files, folder: string, secret: string | undefined): Checkpoint => {
  const path = join(folder, manifestName);
  const manifest = readManifest(files, path, secret);
  const { step } = manifest;
  if (nameIn(basename(folder)) !== folderName(step))
    throw new DamagedCheckpointError(`${path} says step ${step}, but is in ${folder}`);
  const tensors = new Map(manifest.files.map((file) => [file.name, readPart(files, folder, file)]));
  const counted = tensors.get(sharedFile)?.get(stepTensor)?.toNumbers()[0];
  if (counted !== step)
    throw new DamagedCheckpointError(
      `${path} says step ${step}, but ${stepTensor} of ${sharedFile} is ${counted ?? "missing"}`,
    );
  return { folder, manifest, tensors };
};

/** Whether a run has saved a checkpoint, valid or not. */
export const hasCheckpoint = (files: Files, output: string): boolean => checkpointFolders(files, output).length > 0;

/** Returns the step of the newest checkpoint of a run, valid or not; 0 if there is no checkpoint. */
export const newestStep = (files: Files, output: string): number =>
  Number(checkpointNames(files, output)[0]?.slice(5) ?? 0);

/**
 * Maximum number of checkpoints that the run may remove before this process has read them. After this number of removed
 * checkpoints, the search for a valid checkpoint fails.
 */
export const maxRemoved = 20;

/**
 * Reads the newest valid checkpoint of a run, which may be running. If the run removes or replaces the checkpoint in
 * the meantime, lists the checkpoints again. Does not change any files.
 *
 * @param onRejected called for each newer checkpoint that is truncated or altered, with the reason.
 * @param secret secret of the signatures; checkpoints without a valid signature are skipped. Absent: signatures are not
 * checked.
 * @throws CheckpointError if there is no checkpoint, DamagedCheckpointError if no checkpoint is valid.
 */
export const newestCheckpoint = (
  files: Files,
  output: string,
  onRejected: (reason: string) => void,
  secret?: string,
): Checkpoint => {
  const parent = checkpointsFolder(output);
  const [readOnce, rejected] = [new Set<string>(), new Map<string, string>()];
  for (let removed = 0; removed < maxRemoved; ) {
    const name = checkpointFolders(files, output).find((each) => !rejected.has(each));
    if (name === undefined) throw noValidCheckpoint(parent, [...rejected.values()]);
    try {
      const checkpoint = readCheckpoint(files, join(parent, name), secret);
      for (const reason of rejected.values()) onRejected(reason);
      return checkpoint;
    } catch (error) {
      if (!(error instanceof DamagedCheckpointError)) throw error;
      if (!files.list(parent).includes(name)) removed++;
      // If the run replaced the checkpoint in the meantime, the files that were read belong to two checkpoints.
      else if (error instanceof DamagedPartError && !readOnce.has(name)) readOnce.add(name);
      else rejected.set(name, error.message);
    }
  }
  throw new DamagedCheckpointError(
    `${parent}: the run removed ${maxRemoved} checkpoints, each before it was read; wait until the run has ended, or keep more checkpoints (checkpoint.keep)`,
  );
};

const noValidCheckpoint = (parent: string, reasons: readonly string[]): Error =>
  reasons.length === 0
    ? new CheckpointError(
        `no checkpoint to resume from: ${parent} has no checkpoints; name the output folder of a run, or start a new run with skein-train run`,
      )
    : new DamagedCheckpointError(
        `no checkpoint to resume from: ${parent} has ${reasons.length}, but none is valid (${reasons.join("; ")}); check the disk, restore a copy, or start a new run with skein-train run`,
      );

/** Maximum number of differences listed in a message. */
const listed = 5;

/**
 * Requires that a file's tensors match the job's model.
 * @throws CheckpointError that lists the first differing tensors.
 */
export const requireSameTensors = (
  saved: ReadonlyMap<string, TensorSpec>,
  expected: ReadonlyMap<string, TensorSpec>,
  checkpoint: string,
): void => {
  // Parameters are listed first, because they describe the model best.
  const isParameter = (name: string): number => (name.startsWith("params.") ? 0 : 1);
  const names = [...new Set([...expected.keys(), ...saved.keys()])].sort((a, b) => isParameter(a) - isParameter(b));
  const differences = names.flatMap((name) => {
    const [here, there] = [expected.get(name), saved.get(name)];
    if (here === undefined) return [`  ${name}: ${formatSpec(there!)} in the checkpoint, not in the job's model`];
    if (there === undefined) return [`  ${name}: ${formatSpec(here)} in the job's model, not in the checkpoint`];
    return sameSpec(here, there)
      ? []
      : [`  ${name}: ${formatSpec(there)} in the checkpoint, ${formatSpec(here)} in the job's model`];
  });
  if (differences.length === 0) return;
  const rest = differences.length > listed ? [`  and ${differences.length - listed} more`] : [];
  throw new CheckpointError(
    [
      `${checkpoint} is of a different model or optimizer; ${differences.length} of ${Math.max(saved.size, expected.size)} tensors differ; resume with the job that wrote it:`,
      ...differences.slice(0, listed),
      ...rest,
    ].join("\n"),
  );
};

import { basename, join } from "node:path";
import { type NdArray, readSafetensors, type TensorSpec, layoutSafetensors } from "@skein/tensor-core";
import { formatSpec, sameSpec } from "@skein/tensor-core/backend";
import { decodeManifest, encodeManifest, type Manifest, ManifestFault } from "./checkpoint-manifest.ts";
import { checkpointsFolder, folderName, type SavedFile, temporaryFolder, temporaryPrefix } from "./checkpoint-part.ts";
import { sha256 } from "../files/sha256.ts";
import { CheckpointError, DamagedCheckpointError, describeError, isShortage } from "../errors.ts";
import type { Files } from "../files/files.ts";

export type NamedTensors = ReadonlyMap<string, NdArray>;

/** The file with what all ranks share: parameters, optimizer state, random key. */
export const sharedFile = "shared.safetensors";

/** Among what ranks share: the number of steps done. */
const stepTensor = "step";

/** The file with what a rank has alone: compressor residuals. */
export const rankFile = (rank: number): string => `rank-${rank}.safetensors`;

/** Before the name of a checkpoint that another of the same step is taking the place of. */
const replacedPrefix = ".replaced-";
const manifestName = "manifest.json";
/** Room for the names and hashes of the files of 100,000 ranks, and for a plan of as many buckets. */
const mostManifestBytes = 64 * 2 ** 20;

/** What the file says, as a stable text: hash it to tell one model from another. */
export const specsText = (specs: ReadonlyMap<string, TensorSpec>): string =>
  [...specs]
    .map(([name, spec]) => `${name} ${formatSpec(spec)}\n`)
    .sort()
    .join("");

/** What a file with these tensors holds, piece by piece: its head, then the tensors' own memory. */
export const partContent = (tensors: NamedTensors): Uint8Array<ArrayBuffer>[] => {
  const { head, header } = layoutSafetensors(tensors);
  return [head, ...header.entries.map(({ name }) => tensors.get(name)!.bytes() as Uint8Array<ArrayBuffer>)];
};

/**
 * What a rank says that it has written must be found by the process that writes the manifest.
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
        `the checkpoint of step ${step} was given up: ${path} was written by a rank, but cannot be read here (${(cause as NodeJS.ErrnoException).code}); the output folder must be one that all machines of the run share`,
        { cause },
      );
    }
    if (found !== bytes)
      throw new DamagedCheckpointError(
        `the checkpoint of step ${step} was given up: ${path} has ${found} bytes here, but the rank that wrote it wrote ${bytes}; see to the disk that the machines of the run share`,
      );
  }
};

/** Which checkpoints of a run stay: the newest so many, and that of a step. */
export interface Kept {
  readonly newest: number;
  readonly step?: number | undefined;
}

/**
 * Finish a checkpoint when all parts are written: manifest, fsync of the folder, rename, fsync of the parent. A crash
 * at any moment leaves either the whole checkpoint or none under its final name, and never takes away one of the same
 * step that was there before. Then removes all but those to be kept.
 *
 * Cost: a part is opened and measured, not read; who resumes reads and hashes all of it.
 *
 * @param secret signs the manifest.
 * @returns the checkpoint's folder.
 * @throws DamagedCheckpointError where a part is not there.
 */
export const commitCheckpoint = (
  files: Files,
  output: string,
  manifest: Manifest,
  kept: Kept,
  secret?: string,
): string => {
  const parent = checkpointsFolder(output);
  const temporary = temporaryFolder(output, manifest.step);
  const name = folderName(manifest.step);
  const [final, replaced] = [join(parent, name), join(parent, `${replacedPrefix}${name}`)];
  requireParts(files, temporary, manifest);
  files.writeDurably(join(temporary, manifestName), [encodeManifest(manifest, secret)]);
  files.syncFolder(temporary);
  // The same step may have been saved before an interruption. A folder cannot be exchanged in one operation: until the
  // new one is in place the old one keeps a name that `checkpointFolders` and `discardPartial` know.
  const again = files.list(parent).includes(name);
  if (again) files.rename(final, replaced);
  files.rename(temporary, final);
  files.syncFolder(parent);
  if (again) files.remove(replaced);
  for (const old of checkpointNames(files, output).slice(kept.newest))
    if (stepOfName(old) !== kept.step) files.remove(join(parent, old));
  return final;
};

/**
 * Bring the checkpoints of a run in order after a failure or a kill: throw away those that were not finished, and give
 * one whose successor never came its name back. For the process that holds the folder: another would take the files of
 * a running `commitCheckpoint` away.
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

/** The step of a checkpoint, by the name of its folder. */
export const stepOfName = (name: string): number => Number(name.slice(5));

/** Names of a run's checkpoints, newest first. */
export const checkpointNames = (files: Files, output: string): string[] =>
  files
    .list(checkpointsFolder(output))
    .filter((name) => /^step-\d{8,}$/.test(name))
    .sort((a, b) => stepOfName(b) - stepOfName(a));

/**
 * Folders of a run's checkpoints below `checkpoints`, newest first. Among them is a checkpoint that another of the same
 * step is taking the place of, at the moment or when the run was killed.
 */
const checkpointFolders = (files: Files, output: string): string[] => {
  const names = new Set(checkpointNames(files, output));
  const replaced = files
    .list(checkpointsFolder(output))
    .filter((name) => name.startsWith(replacedPrefix) && !names.has(nameIn(name)));
  return [...names, ...replaced].sort((a, b) => stepOfName(nameIn(b)) - stepOfName(nameIn(a)));
};

/** The name that a checkpoint has, or had before it was replaced. */
const nameIn = (folder: string): string =>
  folder.startsWith(replacedPrefix) ? folder.slice(replacedPrefix.length) : folder;

/** A sound checkpoint, its bytes checked against their hashes. */
export interface Checkpoint {
  readonly folder: string;
  readonly manifest: Manifest;
  /** Tensors by file name. */
  readonly tensors: ReadonlyMap<string, NamedTensors>;
}

/** A file that is not what the manifest says of it. */
class DamagedPartError extends DamagedCheckpointError {
  override name = "DamagedPartError";
}

/** The tensors of one file of a checkpoint, its bytes checked. @throws DamagedCheckpointError */
export const readPart = (files: Files, folder: string, { name, bytes, sha256: expected }: SavedFile): NamedTensors => {
  const path = join(folder, name);
  let content: Uint8Array;
  try {
    content = files.read(path, bytes);
  } catch (cause) {
    if (isShortage(describeError(cause))) throw cause; // it says nothing of the file
    throw new DamagedPartError(
      `${path} cannot be read as the ${bytes} bytes of its manifest: ${(cause as Error).message}`,
      {
        cause,
      },
    );
  }
  if (content.length !== bytes)
    throw new DamagedPartError(`${path} has ${content.length} bytes, but its manifest says ${bytes}: it is torn`);
  if (sha256(content) !== expected)
    throw new DamagedPartError(`${path} does not have the SHA-256 of its manifest: it was altered`);
  return readSafetensors(content).tensors;
};

const readManifest = (files: Files, path: string, secret: string | undefined): Manifest => {
  try {
    return decodeManifest(files.read(path, mostManifestBytes), secret);
  } catch (cause) {
    if (isShortage(describeError(cause))) throw cause;
    throw new DamagedCheckpointError(
      `${path} ${cause instanceof ManifestFault ? cause.message : "is missing or damaged"}`,
      { cause },
    );
  }
};

/** The checkpoint in a folder, every byte of it checked. @throws DamagedCheckpointError */
export const readCheckpoint = (files: Files, folder: string, secret: string | undefined): Checkpoint => {
  const path = join(folder, manifestName);
  const manifest = readManifest(files, path, secret);
  const { step } = manifest;
  if (nameIn(basename(folder)) !== folderName(step))
    throw new DamagedCheckpointError(`${path} says step ${step}, but stands in ${folder}`);
  const tensors = new Map(manifest.files.map((file) => [file.name, readPart(files, folder, file)]));
  const counted = tensors.get(sharedFile)?.get(stepTensor)?.toNumbers()[0];
  if (counted !== step)
    throw new DamagedCheckpointError(
      `${path} says step ${step}, but ${stepTensor} of ${sharedFile} is ${counted ?? "not there"}`,
    );
  return { folder, manifest, tensors };
};

/** Whether a run has saved anything yet, sound or not. */
export const hasCheckpoint = (files: Files, output: string): boolean => checkpointFolders(files, output).length > 0;

/** The step of the newest checkpoint of a run, sound or not; 0 where there is none. */
export const newestStep = (files: Files, output: string): number =>
  Number(checkpointNames(files, output)[0]?.slice(5) ?? 0);

/** Maximum number of checkpoints that a running run may remove while they are read, one after the other. */
export const maxRemoved = 20;

/**
 * The newest sound checkpoint of a run, which may be running: one that it removes or replaces meanwhile counts as none,
 * and checkpoints are listed again. Changes nothing.
 *
 * @param onRejected is told each newer one that is torn or altered, and why.
 * @param secret where given, one that it has not signed is passed over too.
 * @throws CheckpointError when there is none, DamagedCheckpointError when none is sound.
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
    if (name === undefined) throw noneSound(parent, [...rejected.values()]);
    try {
      const checkpoint = readCheckpoint(files, join(parent, name), secret);
      for (const reason of rejected.values()) onRejected(reason);
      return checkpoint;
    } catch (error) {
      if (!(error instanceof DamagedCheckpointError)) throw error;
      if (!files.list(parent).includes(name)) removed++;
      // Files of two checkpoints were read if the run has replaced it meanwhile.
      else if (error instanceof DamagedPartError && !readOnce.has(name)) readOnce.add(name);
      else rejected.set(name, error.message);
    }
  }
  throw new DamagedCheckpointError(
    `${parent}: the run removed ${maxRemoved} checkpoints, each before it was read; wait until the run has ended, or let it keep more (checkpoint.keep)`,
  );
};

const noneSound = (parent: string, reasons: readonly string[]): Error =>
  reasons.length === 0
    ? new CheckpointError(
        `no checkpoint to resume from: ${parent} holds none; name the output folder of a run, or start anew with skein-train run`,
      )
    : new DamagedCheckpointError(
        `no checkpoint to resume from: ${parent} holds ${reasons.length}, but none is sound (${reasons.join("; ")}); see that its disk is there and whole, put a copy back, or start anew with skein-train run`,
      );

/** How many differences a message lists. */
const listed = 5;

/**
 * Check that a file's tensors are those that the job's model has.
 * @throws CheckpointError that lists the first tensors that differ.
 */
export const requireSameTensors = (
  saved: ReadonlyMap<string, TensorSpec>,
  expected: ReadonlyMap<string, TensorSpec>,
  checkpoint: string,
): void => {
  // they say most about the model, so they come first
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
      `${checkpoint} is of another model or optimizer; ${differences.length} of ${Math.max(saved.size, expected.size)} tensors differ; resume with the job that wrote it:`,
      ...differences.slice(0, listed),
      ...rest,
    ].join("\n"),
  );
};

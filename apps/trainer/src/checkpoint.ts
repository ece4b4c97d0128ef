import { createHash } from "node:crypto";
import { join } from "node:path";
import type { DataPosition } from "@skein/data";
import { formatSpec, type NdArray, readSafetensors, sameSpec, type TensorSpec, writeSafetensors } from "@skein/tensor-core";
import { z } from "zod";
import { CheckpointError } from "./errors.ts";
import { type ExchangePlan, exchangePlanSchema } from "./planning/exchange-plan.ts";
import type { Files } from "./files.ts";

const digest = z.string().regex(/^[0-9a-f]{64}$/);
const count = z.int().min(0);

/** A file of a checkpoint, as it was when written. */
export interface SavedFile {
  readonly name: string;
  readonly bytes: number;
  readonly sha256: string;
}

/** `manifest.json`: what a checkpoint holds. Written last; a folder without one is no checkpoint. */
export interface Manifest {
  readonly format: "skein-checkpoint";
  readonly version: 1;
  /** Steps done. */
  readonly step: number;
  readonly data: DataPosition;
  readonly worldSize: number;
  /** Of names, dtypes and shapes of the saved tensors. */
  readonly modelHash: string;
  /** Of everything in the job that steers the training. */
  readonly jobHash: string;
  /** What was measured and decided about the exchange of gradients; residuals lie as it says. */
  readonly plan?: ExchangePlan | undefined;
  readonly files: readonly SavedFile[];
}

const manifestSchema: z.ZodType<Manifest> = z.strictObject({
  format: z.literal("skein-checkpoint"),
  version: z.literal(1),
  step: count,
  data: z.strictObject({ epoch: count, step: count }),
  worldSize: z.int().min(1),
  modelHash: digest,
  jobHash: digest,
  plan: exchangePlanSchema.optional(),
  files: z.array(z.strictObject({ name: z.string().regex(/^[a-z0-9-]+\.safetensors$/), bytes: count, sha256: digest })).min(1),
});

export type NamedTensors = ReadonlyMap<string, NdArray>;

export const sha256 = (bytes: Uint8Array | string): string => createHash("sha256").update(bytes).digest("hex");

/** The file with what all ranks share: parameters, optimizer state, random key. */
export const sharedFile = "shared.safetensors";

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
 * @returns the checkpoint's folder.
 */
export const commitCheckpoint = (files: Files, output: string, manifest: Manifest, keep: number): string => {
  const parent = checkpointsFolder(output);
  const temporary = join(parent, temporaryName(manifest.step));
  const final = join(parent, folderName(manifest.step));
  files.writeDurably(join(temporary, manifestName), new TextEncoder().encode(`${JSON.stringify(manifest, undefined, 2)}\n`));
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

const readChecked = (files: Files, folder: string): Checkpoint => {
  const path = join(folder, manifestName);
  let manifest: Manifest;
  try {
    manifest = manifestSchema.parse(JSON.parse(new TextDecoder().decode(files.read(path))));
  } catch (cause) {
    throw new CheckpointError(`${path} is missing or damaged`, { cause });
  }
  const tensors = manifest.files.map(({ name, bytes, sha256: expected }): [string, NamedTensors] => {
    let content: Uint8Array;
    try {
      content = files.read(join(folder, name));
    } catch (cause) {
      throw new CheckpointError(`${join(folder, name)} cannot be read`, { cause });
    }
    if (content.length !== bytes)
      throw new CheckpointError(`${join(folder, name)} has ${content.length} bytes, but its manifest says ${bytes}: it is torn`);
    if (sha256(content) !== expected)
      throw new CheckpointError(`${join(folder, name)} does not have the SHA-256 of its manifest: it was altered`);
    return [name, readSafetensors(content).tensors];
  });
  return { folder, manifest, tensors: new Map(tensors) };
};

/** Whether a run has saved anything yet, sound or not. */
export const hasCheckpoint = (files: Files, output: string): boolean => checkpointNames(files, output).length > 0;

/**
 * The newest sound checkpoint of a run.
 *
 * @param onRejected is told each newer one that is torn or altered, and why.
 * @throws CheckpointError when there is none.
 */
export const newestCheckpoint = (files: Files, output: string, onRejected: (reason: string) => void): Checkpoint => {
  const names = checkpointNames(files, output);
  const reasons: string[] = [];
  for (const name of names) {
    try {
      return readChecked(files, join(checkpointsFolder(output), name));
    } catch (error) {
      if (!(error instanceof CheckpointError)) throw error;
      onRejected(error.message);
      reasons.push(error.message);
    }
  }
  const found = names.length === 0 ? "holds none" : `holds ${names.length}, but none is sound (${reasons.join("; ")})`;
  throw new CheckpointError(
    `no checkpoint to resume from: ${checkpointsFolder(output)} ${found}; name the output folder of a run, or start anew with skein-train run`,
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

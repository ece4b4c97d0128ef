import { createHash } from "node:crypto";
import { basename, dirname, join } from "node:path";
import type { OnnxFiles } from "@skein/onnx";
import { explainFullExport } from "../errors.ts";
import { type Files, replaceDurably } from "../files/files.ts";

/** Digits of a digest in a file name: enough to avoid collisions between exports of a model. */
export const digestLength = 16;

/** SHA-256 of the pieces of a file, shortened to `digestLength` digits. */
export const digestOf = (pieces: readonly Uint8Array[]): string => {
  const hash = createHash("sha256");
  for (const piece of pieces) hash.update(piece);
  return hash.digest("hex").slice(0, digestLength);
};

/** Name of the weights file of a model, with the digest of its weights: `digits.onnx.5d41402abc4b2a76.data`. */
export const weightsName = (name: string, digest: string): string => `${name}.${digest}.data`;

const ending = new RegExp(`^\\.[0-9a-f]{${digestLength}}\\.data(\\.tmp)?$`);

/** Whether a file next to a model is from one of its exports: weights, or unfinished weights. */
const isWeightsOf = (name: string, other: string): boolean =>
  other.startsWith(name) && ending.test(other.slice(name.length));

const holds = (files: Files, path: string, content: Uint8Array): boolean => {
  try {
    return Buffer.compare(files.read(path, content.length), content) === 0;
  } catch {
    return false; // missing, or longer
  }
};

/**
 * Writes an ONNX model, and its weights, if separate, in a file next to it. The name of the weights file contains their
 * digest, so it never replaces a different file: until the model is replaced atomically, the old model keeps its own
 * weights. Old weights are removed last.
 *
 * @returns the paths of the files.
 * @throws DiskFullError, or the system's error. Then the old files are unchanged, and new files are removed, except
 * after a crash, when the next export removes them.
 */
export const replaceOnnxFiles = (files: Files, output: string, { model, weights }: OnnxFiles): string[] => {
  const [folder, name] = [dirname(output), basename(output)];
  const ours = weights.length === 0 ? undefined : weightsName(name, digestOf(weights));
  const beside = ours === undefined ? [] : [join(folder, ours)];
  const wasThere = ours !== undefined && files.list(folder).includes(ours);
  try {
    for (const path of beside) replaceDurably(files, path, weights);
    replaceDurably(files, output, model);
  } catch (error) {
    // The disk may report a failure although the model is already in place.
    if (!wasThere && !holds(files, output, model)) for (const path of beside) files.remove(path);
    throw explainFullExport(error, output);
  }
  for (const other of files.list(folder))
    if (isWeightsOf(name, other) && other !== ours) files.remove(join(folder, other));
  return [output, ...beside];
};

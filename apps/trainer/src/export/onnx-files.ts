import { createHash } from "node:crypto";
import { basename, dirname, join } from "node:path";
import { explainFullExport, type Files, replaceDurably } from "@skein/cli/node";
import type { OnnxFiles } from "@skein/onnx";

/** Number of hexadecimal digits of a digest in a file name, enough to avoid collisions. */
export const digestLength = 16;

/**
 * Returns the first `digestLength` digits of the SHA-256 digest of a file. The content of the file is given as
 * consecutive byte arrays.
 */
export const digestOf = (pieces: readonly Uint8Array[]): string => {
  const hash = createHash("sha256");
  for (const piece of pieces) hash.update(piece);
  return hash.digest("hex").slice(0, digestLength);
};

/**
 * Returns the name of a model's weights file, which contains the digest of the weights:
 * `digits.onnx.5d41402abc4b2a76.data`.
 */
export const weightsName = (name: string, digest: string): string => `${name}.${digest}.data`;

const ending = new RegExp(`^\\.[0-9a-f]{${digestLength}}\\.data(\\.tmp)?$`);

/** Whether the name `other` is the name of a weights file, complete or unfinished, of the model `name`. */
const isWeightsOf = (name: string, other: string): boolean =>
  other.startsWith(name) && ending.test(other.slice(name.length));

const holds = (files: Files, path: string, content: Uint8Array): boolean => {
  try {
    return Buffer.compare(files.read(path, content.length), content) === 0;
  } catch {
    return false; // the file is missing, or longer
  }
};

/**
 * Writes an ONNX model and, if its weights are separate, a weights file next to the model. The name of the weights file
 * contains a digest of the weights, so that new weights never replace old weights. The old model remains usable until
 * the new model replaces it atomically. Old weights are removed last.
 *
 * @returns the paths of the written files.
 * @throws DiskFullError, or the system's error. After an error, old files are unchanged, and new files are removed.
 * After a crash, the next export removes the new files.
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
    // The system may report an error although the model has already been replaced.
    if (!wasThere && !holds(files, output, model)) for (const path of beside) files.remove(path);
    throw explainFullExport(error, output);
  }
  for (const other of files.list(folder))
    if (isWeightsOf(name, other) && other !== ours) files.remove(join(folder, other));
  return [output, ...beside];
};

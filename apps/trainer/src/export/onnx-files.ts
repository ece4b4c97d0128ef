import { createHash } from "node:crypto";
import { basename, dirname, join } from "node:path";
import type { OnnxFiles } from "@skein/onnx";
import { explainFullExport } from "../errors.ts";
import { type Files, replaceDurably } from "../files/files.ts";

/** Digits of a digest in a name: enough that no two exports of a model are taken for one another. */
export const digestLength = 16;

/** SHA-256 of the pieces of a file, as far as its name tells it. */
export const digestOf = (pieces: readonly Uint8Array[]): string => {
  const hash = createHash("sha256");
  for (const piece of pieces) hash.update(piece);
  return hash.digest("hex").slice(0, digestLength);
};

/** Name of the file beside a model that has weights of this digest: `digits.onnx.5d41402abc4b2a76.data`. */
export const weightsName = (name: string, digest: string): string => `${name}.${digest}.data`;

const ending = new RegExp(`^\\.[0-9a-f]{${digestLength}}\\.data(\\.tmp)?$`);

/** Whether exports of a model have left a file beside it: weights, or the beginning of such. */
const isWeightsOf = (name: string, other: string): boolean =>
  other.startsWith(name) && ending.test(other.slice(name.length));

const holds = (files: Files, path: string, content: Uint8Array): boolean => {
  try {
    return Buffer.compare(files.read(path, content.length), content) === 0;
  } catch {
    return false; // not there, or longer
  }
};

/**
 * Put an ONNX model in its place, and its weights, where there are such, beside it. The file of weights is called by
 * their digest, so it takes the place of no other: until the model is in its place, in one step, the model that was
 * there has its own weights. Those are removed last.
 *
 * @returns the paths of the files.
 * @throws DiskFullError, or the system's error. What was there before is whole then, and nothing of the new one is
 * left, but for a crash, after which the next export removes it.
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
    // A disk may fail to say that it has the model, when that is in its place already.
    if (!wasThere && !holds(files, output, model)) for (const path of beside) files.remove(path);
    throw explainFullExport(error, output);
  }
  for (const other of files.list(folder))
    if (isWeightsOf(name, other) && other !== ours) files.remove(join(folder, other));
  return [output, ...beside];
};

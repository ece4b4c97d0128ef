import { loadPretrained } from "@skein/pretrained/node";
import { flattenTree, leafPaths, type NdArray } from "@skein/tensor-core";
import type { Job } from "../job.ts";
import { requireSamePretrained } from "./settle-pretrained.ts";

/** Arrays of a tree by path, below a name. */
const byPath = (name: string, tree: unknown): (readonly [string, NdArray])[] => {
  const paths = leafPaths({ [name]: tree });
  return flattenTree<NdArray>(tree).leaves.map((array, i) => [paths[i]!, array] as const);
};

/**
 * What a run begins with of a checkpoint that it is to train on, by the paths of its state; undefined where a job names
 * none. Each rank reads the files itself; on another machine they must hold what the controller of the run has.
 *
 * @throws PretrainedError, SafetensorsError, ConfigError where they do not.
 */
export const pretrainedWeights = async (job: Job): Promise<((path: string) => NdArray | undefined) | undefined> => {
  const { model } = job;
  if (model.kind !== "pretrained" || model.weights === "none") return undefined;
  if (job.transport !== "threads") await requireSamePretrained(job);
  const { params, state } = await loadPretrained(model.folder);
  const arrays = new Map([...byPath("params", params), ...byPath("model", state)]);
  return (path) => arrays.get(path);
};

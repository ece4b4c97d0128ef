import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type NdArray, type SafetensorsEntry, SkeinError, type StoredSpec, unflattenTree } from "@skein/tensor-core";
import { excerpt, excerptName } from "@skein/tensor-core/backend";
import type { Config, Opened, OpenOptions } from "../architecture.ts";
import { reordered } from "../dimension-order.ts";
import { PretrainedError } from "../errors.ts";
import { type FloatDType, toF32 } from "../float-bits.ts";
import { matchTensors } from "../match-tensors.ts";
import { type ModelLeaves, modelLeaves } from "../model-leaves.ts";
import { openConfig } from "../open-config.ts";
import { parseJson } from "../parse-json.ts";
import type { CarriedTensor, Pretrained, Stored } from "../pretrained.ts";
import { configFile, indexFile, parseIndex, singleFile } from "../shards.ts";
import { openSafetensors, type SafetensorsFile } from "./safetensors-file.ts";

const readText = async (path: string): Promise<string> => {
  try {
    return await readFile(path, "utf8");
  } catch (cause) {
    throw new PretrainedError(
      `${path} cannot be read (${(cause as NodeJS.ErrnoException).code}); name the folder of a checkpoint, with ${configFile} and ${singleFile} or ${indexFile}`,
      { cause },
    );
  }
};

/**
 * What `config.json` of a folder says.
 *
 * @throws PretrainedError where there is none, or it holds no JSON object.
 */
export const readConfig = async (folder: string): Promise<Config> => {
  const path = join(folder, configFile);
  const value = parseJson(await readText(path), path);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Config;
  throw new PretrainedError(`${path} holds ${excerpt(value)}, no object; restore it from another copy`);
};

/** Names of a checkpoint's files, and what its index says lies in them, if it has one. */
const filesOf = async (
  folder: string,
): Promise<{ readonly files: readonly string[]; readonly index?: ReadonlyMap<string, string> }> => {
  const names = await readdir(folder);
  if (names.includes(singleFile)) return { files: [singleFile] };
  if (!names.includes(indexFile)) {
    const pickled = names.find((name) => /^pytorch_model.*\.bin$/.test(name));
    throw new PretrainedError(
      `${folder} has neither ${singleFile} nor ${indexFile}${pickled === undefined ? "; name the folder of a checkpoint" : `, but ${excerpt(pickled)}, which runs code when it is read; save it again from Python with safe_serialization=True`}`,
    );
  }
  const path = join(folder, indexFile);
  const index = parseIndex(await readText(path), path);
  return { files: [...new Set(index.values())].sort(), index };
};

/** Where a tensor lies. */
interface Place {
  readonly entry: SafetensorsEntry<StoredSpec>;
  readonly file: SafetensorsFile;
}

/** @throws PretrainedError for a file that is damaged, or cannot be opened, as one of an index that was left behind. */
const openNamed = async (path: string): Promise<SafetensorsFile> => {
  try {
    return await openSafetensors(path);
  } catch (cause) {
    if (cause instanceof SkeinError) throw new PretrainedError(`${path}: ${cause.message}`, { cause });
    throw new PretrainedError(
      `${path} cannot be read (${(cause as NodeJS.ErrnoException).code}); copy all files of the checkpoint into one folder`,
      { cause },
    );
  }
};

/** @throws PretrainedError where the index and what lies in the files differ. */
const placesOf = async (folder: string, opened: SafetensorsFile[]): Promise<ReadonlyMap<string, Place>> => {
  const { files, index } = await filesOf(folder);
  const places = new Map<string, Place>();
  for (const name of files) {
    const file = await openNamed(join(folder, name));
    opened.push(file);
    for (const entry of file.entries) {
      if (index !== undefined && index.get(entry.name) !== name)
        throw new PretrainedError(
          `${join(folder, name)} holds the tensor ${excerptName(entry.name)}, which ${indexFile} puts into ${excerpt(index.get(entry.name))}; files and index must come from one checkpoint`,
        );
      places.set(entry.name, { entry, file });
    }
  }
  for (const [name, file] of index ?? [])
    if (!places.has(name))
      throw new PretrainedError(
        `${indexFile} puts the tensor ${excerptName(name)} into ${join(folder, file)}, which does not hold it; files and index must come from one checkpoint`,
      );
  return places;
};

/** What a folder holds of a model, by path. */
interface Read {
  readonly arrays: ReadonlyMap<string, NdArray>;
  readonly stored: Stored;
}

const readTensors = async (
  folder: string,
  opened: Opened,
  { leaves }: ModelLeaves,
  newHead: boolean,
): Promise<Read> => {
  const files: SafetensorsFile[] = [];
  try {
    const places = await placesOf(folder, files);
    const specs = new Map([...places].map(([name, { entry }]) => [name, entry]));
    const { names, copies, carried: others, made } = matchTensors(opened, leaves, specs, folder, newHead);
    const stored = new Map<string, { readonly name: string; readonly dtype: FloatDType }>();
    const arrays = new Map<string, NdArray>();
    for (const { path, order } of leaves) {
      if (made.has(path)) continue;
      const name = names.get(path)!;
      const { entry, file } = places.get(name)!;
      const array = await file.read(entry as SafetensorsEntry); // that it is of floats was matched
      stored.set(path, { name, dtype: array.dtype as FloatDType });
      arrays.set(path, toF32(order === undefined ? array : reordered(array, order)));
    }
    const carried = new Map<string, CarriedTensor>();
    for (const name of others) {
      const { entry, file } = places.get(name)!;
      carried.set(name, { dtype: entry.dtype, shape: entry.shape, bytes: await file.readBytes(entry) });
    }
    return { arrays, stored: { leaves: stored, copies, carried } };
  } finally {
    await Promise.all(files.map((file) => file.close()));
  }
};

/**
 * Read a checkpoint from a folder in Hugging Face's layout: `config.json`, and `model.safetensors` or several files
 * with `model.safetensors.index.json`. Weights of f32, f16 and bf16 become f32, exactly.
 *
 * Dropout rates of the configuration are for the training that made the checkpoint; they are kept, not applied.
 *
 * Cost: each tensor is read once; memory beside the result: twice the largest tensor.
 * @throws PretrainedError for a folder that is no checkpoint, an architecture or setting that we do not have, and
 * tensors that are missing, extra or of another shape, with their counts. SafetensorsError for a damaged file.
 * @example const { model, params, state } = await loadPretrained<LlamaParams>("checkpoints/llama");
 */
export const loadPretrained = async <Params = unknown, State = unknown>(
  folder: string,
  options: OpenOptions = {},
): Promise<Pretrained<Params, State>> => {
  const config = await readConfig(folder);
  const opened = openConfig(config, options);
  const all = modelLeaves(opened);
  const { arrays, stored } = await readTensors(folder, opened, all, false);
  const { params, state } = unflattenTree<Pick<Pretrained<Params, State>, "params" | "state">>(
    all.structure,
    all.leaves.map(({ path }) => arrays.get(path)!),
  );
  return { config, model: opened.model as Pretrained<Params, State>["model"], params, state, stored };
};

/**
 * Read the weights of a checkpoint for a model with a new head: all but those of the head, f32, by their paths in
 * `{ params, state }`. Whatever the checkpoint's own head is, tokens, other classes or none, it is left.
 *
 * @param config of the new model: see `withNewHead`.
 * @throws PretrainedError as `loadPretrained` does, for a configuration without classes, too. SafetensorsError.
 */
export const loadBody = async (folder: string, config: Config): Promise<ReadonlyMap<string, NdArray>> => {
  const opened = openConfig(config);
  if (opened.head === undefined)
    throw new PretrainedError(`${folder}: the configuration's model has no head for classes; see withNewHead`);
  return (await readTensors(folder, opened, modelLeaves(opened), true)).arrays;
};

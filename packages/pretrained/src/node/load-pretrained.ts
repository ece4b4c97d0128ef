import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { type NdArray, type SafetensorsEntry, SkeinError, type StoredSpec, unflattenTree } from "@skein/tensor-core";
import { excerpt, excerptName } from "@skein/tensor-core/backend";
import type { Config, Opened, OpenConfigOptions } from "../architecture.ts";
import { reordered } from "../dimension-order.ts";
import { PretrainedError } from "../errors.ts";
import { type FloatDType, toF32 } from "../float-bits.ts";
import { matchTensors } from "../match-tensors.ts";
import { type ModelLeaves, modelLeaves } from "../model-leaves.ts";
import { openConfig } from "../open-config.ts";
import { parseJson } from "../parse-json.ts";
import type { CarriedTensor, Pretrained, Stored } from "../pretrained.ts";
import { configFile, indexFile, parseIndex, singleFile } from "../shards.ts";
import { readJsonText } from "./open-file.ts";
import { openSafetensors, type SafetensorsFile } from "./safetensors-file.ts";

const readText = (path: string): string =>
  readJsonText(path, `give the folder of a checkpoint, with ${configFile} and ${singleFile} or ${indexFile}`);

/**
 * Reads `config.json` of a folder.
 *
 * @throws PretrainedError if the file does not exist, or does not contain a JSON object.
 * @example
 * ```ts
 * import { mkdirSync, writeFileSync } from "node:fs";
 * mkdirSync("checkpoint");
 * writeFileSync("checkpoint/config.json", JSON.stringify({ model_type: "llama" }));
 * console.log((await readConfig("checkpoint"))["model_type"]); // llama
 * ```
 */
export const readConfig = async (folder: string): Promise<Config> => {
  const path = join(folder, configFile);
  const value = parseJson(readText(path), path);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Config;
  throw new PretrainedError(`${path} holds ${excerpt(value)} instead of an object; restore it from another copy`);
};

/** Returns the names of a checkpoint's files and, if there is an index, the file of each tensor. */
const filesOf = async (
  folder: string,
): Promise<{ readonly files: readonly string[]; readonly index?: ReadonlyMap<string, string> }> => {
  const names = await readdir(folder).catch((cause: NodeJS.ErrnoException) => {
    throw new PretrainedError(`${folder} cannot be read (${cause.code}); check its permissions`, { cause });
  });
  if (names.includes(singleFile)) return { files: [singleFile] };
  if (!names.includes(indexFile)) {
    const pickled = names.find((name) => /^pytorch_model.*\.bin$/.test(name));
    throw new PretrainedError(
      `${folder} has neither ${singleFile} nor ${indexFile}${pickled === undefined ? "; give the folder of a checkpoint" : `, but ${excerpt(pickled)}, which runs code when it is loaded; save it again from Python with safe_serialization=True`}`,
    );
  }
  const path = join(folder, indexFile);
  const index = parseIndex(readText(path), path);
  return { files: [...new Set(index.values())].sort(), index };
};

/** A tensor, and the file that contains the tensor. */
interface TensorLocation {
  readonly entry: SafetensorsEntry<StoredSpec>;
  readonly file: SafetensorsFile;
}

/**
 * Opens a file of a checkpoint.
 *
 * @throws PretrainedError if the file is damaged or cannot be opened, such as a file that an outdated index lists.
 */
const openNamed = async (path: string): Promise<SafetensorsFile> => {
  try {
    return await openSafetensors(path);
  } catch (cause) {
    if (cause instanceof PretrainedError || !(cause instanceof SkeinError)) throw cause;
    throw new PretrainedError(`${path}: ${cause.message}`, { cause });
  }
};

/**
 * Returns the locations of all tensors, by tensor name.
 *
 * @throws PretrainedError if the index does not match the files.
 */
const locationsOf = async (folder: string, opened: SafetensorsFile[]): Promise<ReadonlyMap<string, TensorLocation>> => {
  const { files, index } = await filesOf(folder);
  const locations = new Map<string, TensorLocation>();
  for (const name of files) {
    const file = await openNamed(join(folder, name));
    opened.push(file);
    for (const entry of file.entries) {
      if (index !== undefined && index.get(entry.name) !== name)
        throw new PretrainedError(
          `${join(folder, name)} holds the tensor ${excerptName(entry.name)}, but ${indexFile} assigns it to ${excerpt(index.get(entry.name))}; files and index must come from the same checkpoint`,
        );
      locations.set(entry.name, { entry, file });
    }
  }
  for (const [name, file] of index ?? [])
    if (!locations.has(name))
      throw new PretrainedError(
        `${indexFile} assigns the tensor ${excerptName(name)} to ${join(folder, file)}, which does not contain it; files and index must come from the same checkpoint`,
      );
  return locations;
};

/** Arrays read from a folder, by leaf path. */
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
    const locations = await locationsOf(folder, files);
    const specs = new Map([...locations].map(([name, { entry }]) => [name, entry]));
    const { names, copies, carried: others, initialised } = matchTensors(opened, leaves, specs, folder, newHead);
    const stored = new Map<string, { readonly name: string; readonly dtype: FloatDType }>();
    const arrays = new Map<string, NdArray>();
    for (const { path, order } of leaves) {
      if (initialised.has(path)) continue;
      const name = names.get(path)!;
      const { entry, file } = locations.get(name)!;
      const array = await file.read(entry as SafetensorsEntry); // matchTensors has checked that the dtype is a float
      stored.set(path, { name, dtype: array.dtype as FloatDType });
      arrays.set(path, toF32(order === undefined ? array : reordered(array, order)));
    }
    const carried = new Map<string, CarriedTensor>();
    for (const name of others) {
      const { entry, file } = locations.get(name)!;
      carried.set(name, { dtype: entry.dtype, shape: entry.shape, bytes: await file.readBytes(entry) });
    }
    return { arrays, stored: { leaves: stored, copies, carried } };
  } finally {
    await Promise.all(files.map((file) => file.close()));
  }
};

/**
 * Loads a checkpoint from a folder in Hugging Face's layout: `config.json`, and `model.safetensors` or several files
 * with `model.safetensors.index.json`. Weights of f32, f16 and bf16 become f32, exactly.
 *
 * Dropout rates in the configuration are preserved but not applied, because they belong to the original training.
 *
 * Cost: each tensor is read once. Additional memory: twice the largest tensor.
 *
 * @throws PretrainedError if the folder is not a checkpoint, if the architecture or a configuration field is not
 * supported, or if a tensor is missing, unexpected or of another shape.
 * @throws SafetensorsError if a file is damaged.
 * @example const { model, params, state } = await loadPretrained<LlamaParams>("checkpoints/llama");
 */
export const loadPretrained = async <Params = unknown, State = unknown>(
  folder: string,
  options: OpenConfigOptions = {},
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
 * Loads the weights of a checkpoint for a model with a new head: all weights outside the head, f32, by path in `{
 * params, state }`. The checkpoint may have a head of any type, or no head.
 *
 * @param config Configuration of the new model, see `withNewHead`.
 * @throws PretrainedError under the conditions of `loadPretrained`, or if the configuration has no classification head.
 * @throws SafetensorsError if a file is damaged.
 */
export const loadBody = async (folder: string, config: Config): Promise<ReadonlyMap<string, NdArray>> => {
  const opened = openConfig(config);
  if (opened.head === undefined)
    throw new PretrainedError(`${folder}: the configuration's model has no classification head; see withNewHead`);
  return (await readTensors(folder, opened, modelLeaves(opened), true)).arrays;
};

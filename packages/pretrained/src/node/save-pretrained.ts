import { mkdir, readdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  ArgumentError,
  formatShape,
  type NdArray,
  sameShape,
  storedByteLength,
  type StoredSpec,
} from "@skein/tensor-core";
import { excerptName, formatSpec, leavesByPath } from "@skein/tensor-core/backend";
import type { Config } from "../architecture.ts";
import { inverseOrder, reordered } from "../dimension-order.ts";
import { PretrainedError } from "../errors.ts";
import { type FloatDType, fromF32 } from "../float-bits.ts";
import { imageProcessorConfig, processorFiles } from "../image-processor.ts";
import { type ModelLeaf, modelLeaves } from "../model-leaves.ts";
import { openConfig } from "../open-config.ts";
import type { Weights } from "../pretrained.ts";
import { configFile, defaultShardBytes, indexFile, indexText, planShards } from "../shards.ts";
import { writeSafetensorsFile } from "./safetensors-file.ts";

export interface SaveOptions {
  /** Dtype in which all weights are saved. Default: dtype in which they were stored, or f32 for new weights. */
  readonly dtype?: FloatDType;
  /**
   * Maximum total size in bytes of the tensors in a file. A larger tensor is stored in its own file. Default: 5 · 10⁹,
   * as in Hugging Face's libraries.
   */
  readonly maxShardBytes?: number;
}

/** Metadata required by transformers. */
const metadata = { format: "pt" };

/** Names of dtypes in a configuration. */
const dtypeNames: Readonly<Record<FloatDType, string>> = { f32: "float32", f16: "float16", bf16: "bfloat16" };

const jsonText = (value: object): string => `${JSON.stringify(value, undefined, 2)}\n`;

const withDType = (config: Config, dtype: FloatDType | undefined): Config =>
  dtype === undefined ? config : { ...config, ["dtype" in config ? "dtype" : "torch_dtype"]: dtypeNames[dtype] };

/** Returns the arrays of a tree, by path. @throws PretrainedError unless they match the leaves of the model. */
const arraysOf = (leaves: readonly ModelLeaf[], tree: unknown): ReadonlyMap<string, NdArray> => {
  const arrays = leavesByPath<NdArray>(tree);
  const faults = leaves.flatMap(({ path, shape }) => {
    const array = arrays.get(path);
    if (array === undefined) return [`${path} ${formatShape(shape)} is missing`];
    return array.dtype === "f32" && sameShape(array.shape, shape)
      ? []
      : [`${path} is ${formatSpec(array)} instead of f32${formatShape(shape)}`];
  });
  const known = new Set(leaves.map(({ path }) => path));
  faults.push(...[...arrays.keys()].filter((path) => !known.has(path)).map((path) => `${path} is not of the model`));
  if (faults.length === 0) return arrays;
  throw new PretrainedError(
    `the arrays do not match the configuration's model: ${faults.length} differ, such as ${faults.slice(0, 4).join(", ")}; save a tree returned by its model's init or by loadPretrained, trained or not`,
  );
};

/** Smallest positive number that is rounded to infinity in f16. */
const firstInfiniteF16 = 65_520;

/** Checks the range of weights. @throws PretrainedError if a finite value overflows to infinity in `dtype`. */
const requireRange = (name: string, { data }: NdArray, dtype: FloatDType): void => {
  if (dtype !== "f16") return;
  let numBeyond = 0;
  for (const value of data) if (Math.abs(value) >= firstInfiniteF16 && Number.isFinite(value)) numBeyond++;
  if (numBeyond > 0)
    throw new PretrainedError(
      `${numBeyond} of the ${data.length} values of ${excerptName(name)} are ${firstInfiniteF16} or more, which exceeds f16; save as bf16 or f32`,
    );
};

/** Whether a file is part of a checkpoint, including its image processor. */
const isOfCheckpoint = (name: string): boolean =>
  name === configFile || /^model.*\.safetensors/.test(name) || Object.values<string>(processorFiles).includes(name);

/**
 * Creates the folder if necessary, and checks that it contains no checkpoint.
 *
 * @throws PretrainedError if the folder already contains files of a checkpoint, which could be confused with the new
 * files.
 */
const requireNoCheckpoint = async (folder: string): Promise<void> => {
  await mkdir(folder, { recursive: true });
  const there = (await readdir(folder)).find(isOfCheckpoint);
  if (there !== undefined)
    throw new PretrainedError(`${folder} already has a checkpoint (${there}); give another folder, or remove it`);
};

/**
 * Saves a checkpoint in Hugging Face's layout: `config.json`, and `model.safetensors` or several files of limited size
 * with an index. Also writes `preprocessor_config.json` if `imageProcessor` is given. All content read by
 * `loadPretrained` is written back bit by bit, including unknown fields and tensors. Tokenizer files are not copied.
 *
 * `config.json` is written last, so that a folder without `config.json` is recognized as incomplete.
 *
 * Additional memory: twice the largest tensor.
 *
 * @throws PretrainedError if the folder already has a checkpoint, if an array does not match the model, or if a number
 * overflows in f16.
 * @example
 * ```ts
 * const config = {
 *   model_type: "llama", vocab_size: 9, hidden_size: 8, intermediate_size: 12, num_hidden_layers: 1,
 *   num_attention_heads: 2,
 * };
 * const fresh = await evaluate(modelOf(config).init, referenceBackend())(randomKey(1));
 * await savePretrained("checkpoint", { config, ...fresh }, { dtype: "bf16" });
 * console.log((await readConfig("checkpoint"))["model_type"]); // llama
 * ```
 */
export const savePretrained = async (
  folder: string,
  { config, params, state = {}, stored, imageProcessor }: Weights,
  { dtype, maxShardBytes = defaultShardBytes }: SaveOptions = {},
): Promise<void> => {
  if (!(maxShardBytes > 0))
    throw new ArgumentError(
      `savePretrained: maxShardBytes is ${maxShardBytes}, but must be above 0; use, for example, ${defaultShardBytes}`,
    );
  const { leaves } = modelLeaves(openConfig(config));
  const arrays = arraysOf(leaves, { params, state });
  const names = new Map<string, string>();
  const specs = new Map<string, StoredSpec>();
  const makers = new Map<string, () => Uint8Array>();
  for (const { path, name, nameShape, order } of leaves) {
    const was = stored?.leaves.get(path);
    const written = dtype ?? was?.dtype ?? "f32";
    const own = was?.name ?? name;
    requireRange(own, arrays.get(path)!, written);
    names.set(path, own);
    specs.set(own, { dtype: written, shape: nameShape });
    makers.set(own, () => {
      const array = fromF32(arrays.get(path)!, written);
      return (order === undefined ? array : reordered(array, inverseOrder(order))).bytes();
    });
  }
  for (const [copy, path] of stored?.copies ?? []) {
    const name = names.get(path)!;
    specs.set(copy, specs.get(name)!);
    makers.set(copy, makers.get(name)!);
  }
  for (const [name, { dtype: own, shape, bytes }] of stored?.carried ?? []) {
    specs.set(name, { dtype: own, shape });
    makers.set(name, () => bytes);
  }
  const sizes = new Map([...specs].map(([name, spec]) => [name, storedByteLength(spec)]));
  await requireNoCheckpoint(folder);
  const shards = planShards(sizes, maxShardBytes);
  for (const { file, names: own } of shards)
    await writeSafetensorsFile(
      join(folder, file),
      new Map(own.map((name) => [name, specs.get(name)!])),
      metadata,
      (name) => makers.get(name)!(),
    );
  if (shards.length > 1)
    await writeFile(
      join(folder, indexFile),
      indexText(
        shards,
        [...sizes.values()].reduce((total, own) => total + own, 0),
      ),
    );
  if (imageProcessor !== undefined) {
    const channels = config["num_channels"];
    const fields = imageProcessorConfig(imageProcessor, typeof channels === "number" ? channels : 3);
    await writeFile(join(folder, processorFiles.own), jsonText(fields));
  }
  const unfinished = join(folder, `.${configFile}`);
  // The dtype in the original configuration is no longer correct if weights are saved in another dtype.
  await writeFile(unfinished, jsonText(withDType(config, dtype ?? (stored === undefined ? "f32" : undefined))));
  await rename(unfinished, join(folder, configFile));
};

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
  /** Of all weights. Default: as they were stored, f32 where they were not. */
  readonly dtype?: FloatDType;
  /** Most bytes of tensors in a file; a tensor that is larger has its own. Default: 5 · 10⁹, as Hugging Face has it. */
  readonly mostShardBytes?: number;
}

/** transformers opens no file without it. */
const metadata = { format: "pt" };

/** Names of dtypes in a configuration. */
const dtypeNames: Readonly<Record<FloatDType, string>> = { f32: "float32", f16: "float16", bf16: "bfloat16" };

const jsonText = (value: object): string => `${JSON.stringify(value, undefined, 2)}\n`;

const withDType = (config: Config, dtype: FloatDType | undefined): Config =>
  dtype === undefined ? config : { ...config, ["dtype" in config ? "dtype" : "torch_dtype"]: dtypeNames[dtype] };

/** The arrays of a tree, by path. @throws PretrainedError unless they are what the model of the configuration keeps. */
const arraysOf = (leaves: readonly ModelLeaf[], tree: unknown): ReadonlyMap<string, NdArray> => {
  const arrays = leavesByPath<NdArray>(tree);
  const faults = leaves.flatMap(({ path, shape }) => {
    const array = arrays.get(path);
    if (array === undefined) return [`${path} ${formatShape(shape)} is missing`];
    return array.dtype === "f32" && sameShape(array.shape, shape)
      ? []
      : [`${path} is ${formatSpec(array)} for f32${formatShape(shape)}`];
  });
  const known = new Set(leaves.map(({ path }) => path));
  faults.push(...[...arrays.keys()].filter((path) => !known.has(path)).map((path) => `${path} is not of the model`));
  if (faults.length === 0) return arrays;
  throw new PretrainedError(
    `the arrays are not those of the configuration's model: ${faults.length} differ, such as ${faults.slice(0, 4).join(", ")}; save the tree that its model's init or loadPretrained gave, trained or not`,
  );
};

/** From here on a number is rounded to an infinite f16. */
const firstInfiniteF16 = 65_520;

/** @throws PretrainedError for finite numbers that a dtype would make infinite. */
const needRange = (name: string, { data }: NdArray, dtype: FloatDType): void => {
  if (dtype !== "f16") return;
  let numBeyond = 0;
  for (const value of data) if (Math.abs(value) >= firstInfiniteF16 && Number.isFinite(value)) numBeyond++;
  if (numBeyond > 0)
    throw new PretrainedError(
      `${numBeyond} of the ${data.length} values of ${excerptName(name)} are ${firstInfiniteF16} or more, which f16 does not hold; save as bf16 or f32`,
    );
};

/** Files of a checkpoint: of its model, and of the images that it takes. */
const isOfCheckpoint = (name: string): boolean =>
  name === configFile || /^model.*\.safetensors/.test(name) || Object.values<string>(processorFiles).includes(name);

/** @throws PretrainedError where a checkpoint lies already: its files would mix with the new ones. */
const needEmpty = async (folder: string): Promise<void> => {
  await mkdir(folder, { recursive: true });
  const there = (await readdir(folder)).find(isOfCheckpoint);
  if (there !== undefined)
    throw new PretrainedError(`${folder} has a checkpoint already (${there}); name another folder, or remove it`);
};

/**
 * Write a checkpoint in Hugging Face's layout: `config.json`, and `model.safetensors` or several files of bounded size
 * with their index; and `preprocessor_config.json` where `imageProcessor` says how images are prepared. What
 * `loadPretrained` read is written bit by bit as it was, unknown fields and tensors included; files of a tokenizer are
 * yours to copy.
 *
 * `config.json` is written last, so that a folder without it is known to be unfinished.
 *
 * Cost: memory beside the arguments: twice the largest tensor.
 * @throws PretrainedError where a checkpoint lies there already, for arrays that are not the model's, and for numbers
 * that f16 does not hold.
 * @example await savePretrained("checkpoints/mine", { ...pretrained, params: trained }, { dtype: "bf16" });
 */
export const savePretrained = async (
  folder: string,
  { config, params, state = {}, stored, imageProcessor }: Weights,
  { dtype, mostShardBytes = defaultShardBytes }: SaveOptions = {},
): Promise<void> => {
  if (!(mostShardBytes > 0))
    throw new ArgumentError(
      `savePretrained: mostShardBytes is ${mostShardBytes}, but it is a number above 0; use for example ${defaultShardBytes}`,
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
    needRange(own, arrays.get(path)!, written);
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
  await needEmpty(folder);
  const shards = planShards(sizes, mostShardBytes);
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
    const said = imageProcessorConfig(imageProcessor, typeof channels === "number" ? channels : 3);
    await writeFile(join(folder, processorFiles.own), jsonText(said));
  }
  const unfinished = join(folder, `.${configFile}`);
  // What the folder that they come from says of it is no longer true of weights that are written otherwise.
  await writeFile(unfinished, jsonText(withDType(config, dtype ?? (stored === undefined ? "f32" : undefined))));
  await rename(unfinished, join(folder, configFile));
};

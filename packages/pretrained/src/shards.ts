import { z } from "zod";
import { excerpt } from "@skein/tensor-core/backend";
import { PretrainedError } from "./errors.ts";
import { parseJson } from "./parse-json.ts";

/** The only file of a checkpoint that needs no index. */
export const singleFile = "model.safetensors";

export const configFile = "config.json";

export const indexFile = "model.safetensors.index.json";

/** Hugging Face's default. */
export const defaultShardBytes = 5e9;

/** Tensors of one file. */
export interface Shard {
  readonly file: string;
  readonly names: readonly string[];
}

/**
 * Divide tensors into files in their order, each of at most so many bytes of data; a tensor that is larger has a file
 * of its own.
 *
 * @returns files named as Hugging Face names them: `model.safetensors`, or `model-00001-of-00003.safetensors` and so
 * on.
 */
export const planShards = (bytes: ReadonlyMap<string, number>, mostBytes: number): Shard[] => {
  const groups: string[][] = [[]];
  let filled = 0;
  for (const [name, own] of bytes) {
    if (filled + own > mostBytes && groups.at(-1)!.length > 0) {
      groups.push([]);
      filled = 0;
    }
    groups.at(-1)!.push(name);
    filled += own;
  }
  const digits = (count: number): string => String(count).padStart(5, "0");
  return groups.map((names, i) => ({
    file: groups.length === 1 ? singleFile : `model-${digits(i + 1)}-of-${digits(groups.length)}.safetensors`,
    names,
  }));
};

/** The text of the index of several files. */
export const indexText = (shards: readonly Shard[], totalBytes: number): string => {
  const places = shards
    .flatMap(({ file, names }) => names.map((name): [string, string] => [name, file]))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const lines = places.map(([name, file]) => `    ${JSON.stringify(name)}: ${JSON.stringify(file)}`);
  return `{\n  "metadata": {\n    "total_size": ${totalBytes}\n  },\n  "weight_map": {\n${lines.join(",\n")}\n  }\n}\n`;
};

const indexSchema = z.looseObject({
  weight_map: z.record(z.string(), z.string().regex(/^[^/\\]+\.safetensors$/, "must be a file beside the index")),
});

/**
 * Where the tensors of a checkpoint lie: file by name.
 *
 * @throws PretrainedError for a text that is no index, and for files outside its folder.
 */
export const parseIndex = (text: string, path: string): ReadonlyMap<string, string> => {
  const { success, data, error } = indexSchema.safeParse(parseJson(text, path));
  if (!success)
    throw new PretrainedError(
      `${path} is no index of tensors: ${excerpt(error.issues[0]!.path.join("."))}: ${error.issues[0]!.message}; restore it from another copy`,
    );
  return new Map(Object.entries(data.weight_map));
};

import { z } from "zod";
import { excerpt } from "@skein/tensor-core/backend";
import { PretrainedError } from "./errors.ts";
import { parseJson } from "./parse-json.ts";

/** File name of a checkpoint that consists of a single weight file, which needs no index. */
export const singleFile = "model.safetensors";

export const configFile = "config.json";

export const indexFile = "model.safetensors.index.json";

/** Default maximum size of a shard in bytes, as in Hugging Face's libraries. */
export const defaultShardBytes = 5e9;

/** A weight file, and the names of its tensors. */
export interface Shard {
  readonly file: string;
  readonly names: readonly string[];
}

/**
 * Distributes tensors over files, in order, each with at most `maxBytes` bytes of data. A larger tensor has its own
 * file.
 *
 * @returns files with Hugging Face's names: `model.safetensors`, or `model-00001-of-00003.safetensors` and so on.
 */
export const planShards = (bytes: ReadonlyMap<string, number>, maxBytes: number): Shard[] => {
  const groups: string[][] = [[]];
  let filled = 0;
  for (const [name, own] of bytes) {
    if (filled + own > maxBytes && groups.at(-1)!.length > 0) {
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

/** Returns the text of the index file for several weight files. */
export const indexText = (shards: readonly Shard[], totalBytes: number): string => {
  const entries = shards
    .flatMap(({ file, names }) => names.map((name): [string, string] => [name, file]))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const lines = entries.map(([name, file]) => `    ${JSON.stringify(name)}: ${JSON.stringify(file)}`);
  return `{\n  "metadata": {\n    "total_size": ${totalBytes}\n  },\n  "weight_map": {\n${lines.join(",\n")}\n  }\n}\n`;
};

const indexSchema = z.looseObject({
  weight_map: z.record(z.string(), z.string().regex(/^[^/\\]+\.safetensors$/, "must be a file next to the index")),
});

/**
 * Parses an index. Returns the file name of each tensor, by tensor name.
 *
 * @throws PretrainedError if the text is not an index, or if a file is outside of the folder of the index.
 */
export const parseIndex = (text: string, path: string): ReadonlyMap<string, string> => {
  const { success, data, error } = indexSchema.safeParse(parseJson(text, path));
  if (!success)
    throw new PretrainedError(
      `${path} is not a tensor index: ${excerpt(error.issues[0]!.path.join("."))}: ${error.issues[0]!.message}; restore it from another copy`,
    );
  return new Map(Object.entries(data.weight_map));
};

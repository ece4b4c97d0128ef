import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type NdArray, readSafetensors } from "@skein/tensor-core";

const folder: string = join(import.meta.dirname, "checkpoints");

/** What from-pytorch.py wrote, by name. */
export const checkpoints: readonly string[] = readdirSync(folder).sort();

export const checkpointFolder = (name: string): string => join(folder, name);

/** What PyTorch made of some inputs. */
export const expectedOf = (name: string): { readonly inputs: NdArray; readonly logits: NdArray } => {
  const { tensors } = readSafetensors(readFileSync(join(folder, name, "expected.safetensors")));
  return { inputs: tensors.get("inputs")!, logits: tensors.get("logits")! };
};

/** All tensors of a checkpoint's files, by name. */
export const tensorsOf = (path: string): Map<string, NdArray> =>
  new Map(
    readdirSync(path)
      .filter((file) => /^model.*\.safetensors$/.test(file))
      .flatMap((file) => [...readSafetensors(readFileSync(join(path, file))).tensors]),
  );

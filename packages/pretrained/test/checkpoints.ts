import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { layoutSafetensors, type NdArray, readSafetensors, readStoredHeader } from "@skein/tensor-core";
import type { CarriedTensor } from "../src/index.ts";

const folder: string = join(import.meta.dirname, "checkpoints");

/** Names of the checkpoints written by from-pytorch.py. */
export const checkpoints: readonly string[] = readdirSync(folder).sort();

export const checkpointFolder = (name: string): string => join(folder, name);

/** Returns recorded inputs, and PyTorch's logits for these inputs. */
export const expectedOf = (name: string): { readonly inputs: NdArray; readonly logits: NdArray } => {
  const { tensors } = readSafetensors(readFileSync(join(folder, name, "expected.safetensors")));
  return { inputs: tensors.get("inputs")!, logits: tensors.get("logits")! };
};

/** Returns all tensors in the files of a checkpoint, by name. */
export const tensorsOf = (path: string): Map<string, CarriedTensor> =>
  new Map(
    readdirSync(path)
      .filter((file) => /^model.*\.safetensors$/.test(file))
      .flatMap((file) => {
        const bytes = new Uint8Array(readFileSync(join(path, file)));
        return readStoredHeader(bytes).entries.map(({ name, dtype, shape, begin, end }): [string, CarriedTensor] => [
          name,
          { dtype, shape, bytes: bytes.slice(begin, end) },
        ]);
      }),
  );

/** Converts an array to dtype, shape and bytes, as stored in a file. */
export const asStored = (array: NdArray): CarriedTensor => ({
  dtype: array.dtype,
  shape: array.shape,
  bytes: new Uint8Array(array.bytes()),
});

/** Returns the bytes of a file that contains some tensors. */
export const fileOf = (tensors: ReadonlyMap<string, CarriedTensor>): Uint8Array => {
  const { head, header } = layoutSafetensors(tensors);
  const file = new Uint8Array(header.fileBytes);
  file.set(head);
  for (const { name, begin } of header.entries) file.set(tensors.get(name)!.bytes, begin);
  return file;
};

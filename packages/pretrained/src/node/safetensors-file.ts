import { type FileHandle, open } from "node:fs/promises";
import {
  layoutSafetensors,
  type NdArray,
  readSafetensorsEntry,
  type SafetensorsEntry,
  readSafetensorsHeader,
  safetensorsDataBegin,
  type TensorSpec,
} from "@skein/tensor-core";

/** What Node reads or writes in one call is below 2 GiB. */
const mostBytesPerCall = 2 ** 30;

const readRange = async (file: FileHandle, begin: number, end: number): Promise<Uint8Array> => {
  const bytes = new Uint8Array(end - begin);
  let filled = 0;
  while (filled < bytes.length) {
    const most = Math.min(bytes.length - filled, mostBytesPerCall);
    const { bytesRead } = await file.read(bytes, filled, most, begin + filled);
    if (bytesRead === 0) break; // who reads the bytes says that they are too few
    filled += bytesRead;
  }
  return bytes.subarray(0, filled);
};

/** Tensors of a file that is read tensor by tensor. */
export interface SafetensorsFile {
  readonly entries: readonly SafetensorsEntry[];
  read(entry: SafetensorsEntry): Promise<NdArray>;
  close(): Promise<void>;
}

/**
 * Open a file for reads of one tensor at a time; its head is checked against its size.
 *
 * @throws SafetensorsError for a file that is damaged.
 */
export const openSafetensors = async (path: string): Promise<SafetensorsFile> => {
  const file = await open(path, "r");
  try {
    const { size } = await file.stat();
    const dataBegin = safetensorsDataBegin(await readRange(file, 0, Math.min(8, size)), size);
    const { entries } = readSafetensorsHeader(await readRange(file, 0, dataBegin), size);
    return {
      entries,
      read: async (entry) => readSafetensorsEntry(entry, await readRange(file, entry.begin, entry.end)),
      close: () => file.close(),
    };
  } catch (error) {
    await file.close();
    throw error;
  }
};

/**
 * Write a file whose tensors are made one at a time, and see it to the disk.
 *
 * @param make the tensor of a name, of the given spec.
 */
export const writeSafetensorsFile = async (
  path: string,
  specs: ReadonlyMap<string, TensorSpec>,
  metadata: Readonly<Record<string, string>>,
  make: (name: string) => NdArray,
): Promise<void> => {
  const { head, header } = layoutSafetensors(specs, metadata);
  const file = await open(path, "wx");
  const writeAll = async (bytes: Uint8Array): Promise<void> => {
    for (let written = 0; written < bytes.length; ) {
      const most = Math.min(bytes.length - written, mostBytesPerCall);
      written += (await file.write(bytes, written, most)).bytesWritten;
    }
  };
  try {
    await writeAll(head);
    for (const { name } of header.entries) await writeAll(make(name).bytes());
    await file.sync();
  } finally {
    await file.close();
  }
};

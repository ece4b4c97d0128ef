import { open } from "node:fs/promises";
import {
  layoutSafetensors,
  type NdArray,
  readSafetensorsEntry,
  type SafetensorsEntry,
  readStoredHeader,
  safetensorsDataBegin,
  SafetensorsError,
  type StoredSpec,
} from "@skein/tensor-core";
import { excerptName, mostBytesPerCall, readRange } from "@skein/tensor-core/backend";

/** Tensors of a file that is read tensor by tensor. */
export interface SafetensorsFile {
  readonly entries: readonly SafetensorsEntry<StoredSpec>[];
  read(entry: SafetensorsEntry): Promise<NdArray>;
  /** @throws SafetensorsError where the file has become shorter. */
  readBytes(entry: SafetensorsEntry<StoredSpec>): Promise<Uint8Array>;
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
    const { entries } = readStoredHeader(await readRange(file, 0, dataBegin), size);
    const readBytes: SafetensorsFile["readBytes"] = async ({ name, begin, end }) => {
      const bytes = await readRange(file, begin, end);
      if (bytes.length < end - begin)
        throw new SafetensorsError(
          `tensor ${excerptName(name)} of ${path} takes ${end - begin} bytes, but ${bytes.length} were read; the file has become shorter, restore it from another copy`,
        );
      return bytes;
    };
    return {
      entries,
      read: async (entry) => readSafetensorsEntry(entry, await readBytes(entry)),
      readBytes,
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
 * @param make the bytes of the tensor of a name.
 */
export const writeSafetensorsFile = async (
  path: string,
  specs: ReadonlyMap<string, StoredSpec>,
  metadata: Readonly<Record<string, string>>,
  make: (name: string) => Uint8Array,
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
    for (const { name } of header.entries) await writeAll(make(name));
    await file.sync();
  } finally {
    await file.close();
  }
};

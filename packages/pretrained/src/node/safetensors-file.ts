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
import { excerptName, maxBytesPerCall, readRange } from "@skein/tensor-core/backend";
import { openFile } from "./open-file.ts";

/** A file from which tensors are read one at a time. */
export interface SafetensorsFile {
  readonly entries: readonly SafetensorsEntry<StoredSpec>[];
  read(entry: SafetensorsEntry): Promise<NdArray>;
  /** Reads the bytes of a tensor. @throws SafetensorsError if the file has become shorter since it was opened. */
  readBytes(entry: SafetensorsEntry<StoredSpec>): Promise<Uint8Array>;
  close(): Promise<void>;
}

/**
 * Opens a file for reading one tensor at a time, and checks its header against the file size.
 *
 * @throws SafetensorsError if the file is damaged; PretrainedError if the file cannot be read, or has another format.
 */
export const openSafetensors = async (path: string): Promise<SafetensorsFile> => {
  const file = openFile(path, "copy all files of the checkpoint into one folder", "safetensors");
  const { sizeBytes: size } = file;
  try {
    const dataBegin = safetensorsDataBegin(await readRange(file, 0, Math.min(8, size)), size);
    const { entries } = readStoredHeader(await readRange(file, 0, dataBegin), size);
    const readBytes: SafetensorsFile["readBytes"] = async ({ name, begin, end }) => {
      const bytes = await readRange(file, begin, end);
      if (bytes.length < end - begin)
        throw new SafetensorsError(
          `tensor ${excerptName(name)} of ${path} has ${end - begin} bytes, but ${bytes.length} were read; the file has become shorter: restore it from another copy`,
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
 * Writes a file, creating one tensor at a time, and flushes it to disk.
 *
 * @param make Returns the bytes of the tensor with a name.
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
      const count = Math.min(bytes.length - written, maxBytesPerCall);
      written += (await file.write(bytes, written, count)).bytesWritten;
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

import * as fs from "node:fs";
import { promisify } from "node:util";
import { type FileContent, openCheckedFile, type RangeSource, readRegularText } from "@skein/tensor-core/backend";
import { PretrainedError } from "../errors.ts";

const read = promisify(fs.read);
const close = promisify(fs.close);

const fault = (message: string, options?: ErrorOptions): PretrainedError => new PretrainedError(message, options);

/** An open file of a checkpoint. */
export interface OpenFile extends RangeSource {
  readonly sizeBytes: number;
  close(): Promise<void>;
}

/**
 * Opens a file with `openRegularFile`.
 *
 * @throws PretrainedError that ends with `cure` if the path is not a readable regular file; PretrainedError if the file
 * has another format.
 */
export const openFile = (path: string, cure: string, holds: FileContent): OpenFile => {
  const { file, sizeBytes } = openCheckedFile(fs, path, { holds, cure, fault });
  return {
    sizeBytes,
    read: (target, offset, length, position) => read(file, target, offset, length, position),
    close: () => close(file),
  };
};

/** Reads a complete JSON file with `readRegularText`. @throws PretrainedError. */
export const readJsonText = (path: string, cure: string): string =>
  readRegularText(fs, path, { holds: "json", cure, fault });

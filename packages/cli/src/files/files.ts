import { closeSync, existsSync, fstatSync, fsyncSync, openSync, readdirSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { readBoundedFile } from "@skein/collectives/node";
import { type FileWrites, nodeFileWrites } from "./file-writes.ts";

/** File operations for checkpoints. Injected, so that tests can make them fail. */
export interface Files extends FileWrites {
  /** Waits until the folder's entries are on disk. */
  syncFolder(path: string): void;
  rename(from: string, to: string): void;
  remove(path: string): void;
  /**
   * Reads a regular file.
   * @param maxBytes maximum size in bytes; a larger file is rejected without being read.
   */
  read(path: string, maxBytes: number): Uint8Array;
  /** Returns the size of a file in bytes. Opens the file, so a result means that the file can be read. */
  size(path: string): number;
  /** Returns the names of the entries of a folder; an empty list if the folder does not exist. */
  list(path: string): string[];
}

export const nodeFiles: Files = {
  ...nodeFileWrites,
  syncFolder: (path) => {
    const folder = openSync(path, "r");
    try {
      fsyncSync(folder);
    } finally {
      closeSync(folder);
    }
  },
  rename: renameSync,
  remove: (path) => rmSync(path, { recursive: true, force: true }),
  read: (path, maxBytes) => readBoundedFile(path, maxBytes).bytes,
  size: (path) => {
    const file = openSync(path, "r");
    try {
      return fstatSync(file).size;
    } finally {
      closeSync(file);
    }
  },
  list: (path) => (existsSync(path) ? readdirSync(path) : []),
};

/**
 * Writes a file so that a crash at any time leaves either the complete new file or the old file. If the write fails,
 * for example because the disk is full, the temporary file is removed.
 *
 * The package write-file-atomic 8.0 is not used, because it does not sync the folder, so that a power failure may undo
 * the rename. The package also treats a partial write as complete, and works only with real files, whereas tests
 * simulate a failure of each file operation.
 */
export const replaceDurably = (
  files: Files,
  path: string,
  content: string | Uint8Array | readonly Uint8Array[],
): void => {
  const temporary = `${path}.tmp`;
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  try {
    files.writeDurably(temporary, bytes instanceof Uint8Array ? [bytes] : bytes);
    files.rename(temporary, path);
  } catch (error) {
    try {
      files.remove(temporary);
    } catch {
      // The first error is reported.
    }
    throw error;
  }
  files.syncFolder(dirname(path));
};

import { closeSync, existsSync, fstatSync, fsyncSync, openSync, readdirSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { readBoundedFile } from "@skein/collectives/node";
import { type FileWrites, nodeFileWrites } from "./file-writes.ts";

/** The few file operations that checkpoints need; injected, so that tests can let them fail. */
export interface Files extends FileWrites {
  /** Wait until the disk has the folder's entries. */
  syncFolder(path: string): void;
  rename(from: string, to: string): void;
  remove(path: string): void;
  /** Read a regular file. @param mostBytes that it may have; a longer one is refused unread. */
  read(path: string, mostBytes: number): Uint8Array;
  /** Bytes of a file, once it is opened: so it can be read. */
  size(path: string): number;
  /** Names in a folder; none when it does not exist. */
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
  read: (path, mostBytes) => readBoundedFile(path, mostBytes).bytes,
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
 * Write a file so that a crash at any moment leaves the whole new one, or what was there before. Where it cannot be
 * written, on a full disk, what was begun is taken away again.
 *
 * Own code: write-file-atomic 8.0 does not wait for the folder's entry, so that a rename may be lost with the power;
 * takes what the disk has taken of a write for all of it; and knows no files but the disk's, while tests let each of
 * these steps fail.
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
      // told is what went wrong first
    }
    throw error;
  }
  files.syncFolder(dirname(path));
};

import { closeSync, constants, fsyncSync, openSync, writeSync } from "node:fs";
import { makeFolders } from "./make-folders.ts";

// A rank's writer thread loads this file, so it has few imports. Loading the network code that files.ts imports would
// take longer than writing the checkpoint.

/** File operations that write one rank's files of a checkpoint. Injected, so that tests can make them fail. */
export interface FileWrites {
  makeFolder(path: string): void;
  /** Replaces the content of a file by byte arrays, which are written in order, and waits until the data is on disk. */
  writeDurably(path: string, content: readonly Uint8Array[]): void;
}

const { O_CREAT, O_NOFOLLOW = 0, O_NONBLOCK = 0, O_TRUNC, O_WRONLY } = constants;

/**
 * Opens a file to replace its content; an existing file keeps its mode. Because other users may write to the folder,
 * the call fails for a symbolic link, and for a pipe without a reader instead of waiting.
 */
export const openToWrite = (path: string): number =>
  openSync(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK, 0o666);

export const nodeFileWrites: FileWrites = {
  makeFolder: (path) => void makeFolders(path),
  writeDurably: (path, content) => {
    const file = openToWrite(path);
    try {
      for (const piece of content) for (let done = 0; done < piece.length; ) done += writeSync(file, piece, done);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
  },
};

import { closeSync, constants, fsyncSync, openSync, writeSync } from "node:fs";
import { makeFolders } from "./make-folders.ts";

// A rank's writer thread loads this file, so it imports nothing that needs more than the system: what else there is of
// files (files.ts) brings the whole network with it, whose modules take a thread longer to load than it is at work.

/** What it takes to write a part of a checkpoint; injected, so that tests can let it fail. */
export interface FileWrites {
  makeFolder(path: string): void;
  /** Replace a file, piece by piece, and wait until the disk has it. */
  writeDurably(path: string, content: readonly Uint8Array[]): void;
}

const { O_CREAT, O_NOFOLLOW = 0, O_NONBLOCK = 0, O_TRUNC, O_WRONLY } = constants;

/**
 * Open a file to replace its content; an existing file keeps its mode. Nothing is written through a link, and no reader
 * of a pipe is waited for: others may write to the folder, and both are errors of the system.
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

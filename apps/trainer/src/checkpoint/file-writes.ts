import { closeSync, fsyncSync, openSync, unlinkSync, writeSync } from "node:fs";
import { makeFolders } from "../run/make-folders.ts";

// A rank's writer thread loads this file, so it imports nothing that needs more than the system: what else there is of
// files (files.ts) brings the whole network with it, whose modules take a thread longer to load than it is at work.

/** What it takes to write a part of a checkpoint; injected, so that tests can let it fail. */
export interface FileWrites {
  makeFolder(path: string): void;
  /** Write a new file in place of one that is there, piece by piece, and wait until the disk has it. */
  writeDurably(path: string, content: readonly Uint8Array[]): void;
}

/** Open a new file in place of one that is there. Nothing is written through a link that others have put there. */
export const openNew = (path: string): number => {
  try {
    unlinkSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  return openSync(path, "wx");
};

export const nodeFileWrites: FileWrites = {
  makeFolder: (path) => void makeFolders(path),
  writeDurably: (path, content) => {
    const file = openNew(path);
    try {
      for (const piece of content) for (let done = 0; done < piece.length; ) done += writeSync(file, piece, done);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
  },
};

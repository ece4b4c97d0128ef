import { closeSync, fsyncSync, openSync, writeSync } from "node:fs";
import { makeFolders } from "../run/make-folders.ts";

// A rank's writer thread loads this file, so it imports nothing that needs more than the system: what else there is of
// files (files.ts) brings the whole network with it, whose modules take a thread longer to load than it is at work.

/** What it takes to write a part of a checkpoint; injected, so that tests can let it fail. */
export interface FileWrites {
  makeFolder(path: string): void;
  /** Write a file, piece by piece, and wait until the disk has it. */
  writeDurably(path: string, content: readonly Uint8Array[]): void;
}

export const nodeFileWrites: FileWrites = {
  makeFolder: (path) => void makeFolders(path),
  writeDurably: (path, content) => {
    const file = openSync(path, "w");
    try {
      for (const piece of content) for (let done = 0; done < piece.length; ) done += writeSync(file, piece, done);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
  },
};

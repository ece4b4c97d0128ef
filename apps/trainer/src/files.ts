import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, readdirSync, readFileSync, renameSync, rmSync, writeSync } from "node:fs";

/** The few file operations that checkpoints need; injected, so that tests can let them fail. */
export interface Files {
  makeFolder(path: string): void;
  /** Write all of `bytes` and wait until the disk has them. */
  writeDurably(path: string, bytes: Uint8Array): void;
  /** Wait until the disk has the folder's entries. */
  syncFolder(path: string): void;
  rename(from: string, to: string): void;
  remove(path: string): void;
  read(path: string): Uint8Array;
  /** Names in a folder; none when it does not exist. */
  list(path: string): string[];
}

export const nodeFiles: Files = {
  makeFolder: (path) => void mkdirSync(path, { recursive: true }),
  writeDurably: (path, bytes) => {
    const file = openSync(path, "w");
    try {
      for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
  },
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
  read: readFileSync,
  list: (path) => (existsSync(path) ? readdirSync(path) : []),
};

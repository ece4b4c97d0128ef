import { type Dirent, lstatSync, opendirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { metricsFile } from "../run-files/run-file-names.ts";
import { type FileStamp, isUnchanged, stampOf } from "../files/file-stamp.ts";

/** Depth of folders below the one that is watched; runs are not searched deeper. */
const deepest = 8;
/** Maximum number of folders to search. */
const mostFolders = 200_000;
/** A folder with more bytes is listed in part: it has tens of thousands of entries. */
const largeFolder = 2 ** 20;
const mostEntries = 50_000;
/** Folders that the search skips: parts of a run, and what programs install. */
const skipped: ReadonlySet<string> = new Set(["checkpoints", "node_modules"]);

/** A run that was found, and by what changes of it are seen. */
export interface FoundRun {
  /** Path from the folder that is searched, with slashes; "." for that folder itself. */
  readonly id: string;
  /** When the metrics were last written, milliseconds since 1970. */
  readonly writtenAt: number;
  /** Other numbers after any change of the metrics, and after files of the folder have come or gone. */
  readonly state: readonly number[];
}

interface KnownFolder {
  readonly stamp: FileStamp;
  readonly folders: readonly string[];
}

/**
 * Finds folders with a `metrics.jsonl` below a folder. Links are not followed, so that nothing outside is read. A
 * folder that cannot be read is skipped.
 */
export class FolderSearch {
  private readonly root: string;
  /** By path from the root; a folder that has not changed since is not listed again. */
  private known: ReadonlyMap<string, KnownFolder> = new Map();

  constructor(root: string) {
    this.root = root;
  }

  /**
   * Search once.
   *
   * @returns each run as it is found, undefined for another folder.
   * Cost: two calls of the system for a run that has not changed.
   */
  *sweep(): Generator<FoundRun | undefined, void> {
    const [before, now] = [this.known, new Map<string, KnownFolder>()];
    const waiting: { readonly path: string; readonly depth: number }[] = [{ path: "", depth: 0 }];
    // Breadth first: a deep tree of somebody else keeps no run waiting that lies higher.
    for (let next = 0; next < waiting.length && now.size < mostFolders; next++) {
      const { path, depth } = waiting[next]!;
      const folder = this.look(path, before.get(path));
      if (folder !== undefined) {
        now.set(path, folder);
        if (depth < deepest)
          for (const name of folder.folders)
            waiting.push({ path: path === "" ? name : `${path}/${name}`, depth: depth + 1 });
      }
      yield folder === undefined ? undefined : this.found(path, folder.stamp);
    }
    this.known = now;
  }

  private look(path: string, before: KnownFolder | undefined): KnownFolder | undefined {
    try {
      const place = join(this.root, path);
      const stats = path === "" ? statSync(place) : lstatSync(place);
      if (!stats.isDirectory()) return undefined; // a link has come in its place
      const stamp = stampOf(stats);
      if (before !== undefined && isUnchanged(before.stamp, stamp)) return before;
      return {
        stamp,
        folders: entriesOf(place, stamp.bytes).flatMap((entry) =>
          entry.isDirectory() && !entry.name.startsWith(".") && !skipped.has(entry.name) && entry.name !== metricsFile
            ? [entry.name]
            : [],
        ),
      };
    } catch {
      return undefined;
    }
  }

  private found(path: string, folder: FileStamp): FoundRun | undefined {
    try {
      const stats = lstatSync(join(this.root, path, metricsFile), { throwIfNoEntry: false });
      // What is no regular file is a run with a fault, so that it does not vanish without a word.
      if (stats === undefined || stats.isSymbolicLink()) return undefined;
      const { ino, size, mtimeMs } = stats;
      return { id: path === "" ? "." : path, writtenAt: mtimeMs, state: [folder.writtenAt, ino, size, mtimeMs] };
    } catch {
      return undefined; // deleted meanwhile
    }
  }
}

const entriesOf = (place: string, bytes: number): Dirent[] => {
  if (bytes <= largeFolder) return readdirSync(place, { withFileTypes: true }).slice(0, mostEntries);
  const folder = opendirSync(place, { bufferSize: 1024 });
  const entries: Dirent[] = [];
  try {
    for (let entry = folder.readSync(); entry !== null && entries.length < mostEntries; entry = folder.readSync())
      entries.push(entry);
  } finally {
    folder.closeSync();
  }
  return entries;
};

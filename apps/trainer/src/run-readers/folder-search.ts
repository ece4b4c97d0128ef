import { type Dirent, lstatSync, opendirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { metricsFile } from "../run-files/run-file-names.ts";
import { type FileStamp, isUnchanged, stampOf } from "../files/file-stamp.ts";

/** Maximum depth of searched folders below the watched folder. */
const deepest = 8;
/** Maximum number of folders to search. */
const maxFolders = 200_000;
/** Size of a folder from which only a part of its entries is listed, bytes: it has tens of thousands of entries. */
const largeFolder = 2 ** 20;
const maxEntries = 50_000;
/** Folders that the search skips: parts of a run, and what programs install. */
const skipped: ReadonlySet<string> = new Set(["checkpoints", "node_modules"]);

/** A found run, and the state by which changes are detected. */
export interface FoundRun {
  /** Path from the searched folder, with slashes; "." for that folder itself. */
  readonly id: string;
  /** When the metrics were last written, milliseconds since 1970. */
  readonly writtenAt: number;
  /** Numbers that change with any change of the metrics, and when files are added to the folder or removed. */
  readonly state: readonly number[];
}

interface KnownFolder {
  readonly stamp: FileStamp;
  readonly folders: readonly string[];
}

/**
 * Finds folders with a `metrics.jsonl` below a folder. Links are not followed, so that nothing outside is read.
 * Unreadable folders are skipped.
 */
export class FolderSearch {
  private readonly root: string;
  /** Known folders by path from the root; unchanged folders are not listed again. */
  private known: ReadonlyMap<string, KnownFolder> = new Map();

  constructor(root: string) {
    this.root = root;
  }

  /**
   * Search once.
   *
   * @returns each run when it is found, undefined for other folders. Cost: two system calls per unchanged run.
   */
  *sweep(): Generator<FoundRun | undefined, void> {
    const [before, now] = [this.known, new Map<string, KnownFolder>()];
    const waiting: { readonly path: string; readonly depth: number }[] = [{ path: "", depth: 0 }];
    // Breadth first, so that runs at a higher level do not wait for a deep unrelated tree.
    for (let next = 0; next < waiting.length && now.size < maxFolders; next++) {
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
      const fullPath = join(this.root, path);
      const stats = path === "" ? statSync(fullPath) : lstatSync(fullPath);
      if (!stats.isDirectory()) return undefined; // it has been replaced by a link
      const stamp = stampOf(stats);
      if (before !== undefined && isUnchanged(before.stamp, stamp)) return before;
      return {
        stamp,
        folders: entriesOf(fullPath, stamp.bytes).flatMap((entry) =>
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
      // A file that is not a regular file makes a run with a fault, so that the run does not disappear silently.
      if (stats === undefined || stats.isSymbolicLink()) return undefined;
      const { ino, size, mtimeMs } = stats;
      return { id: path === "" ? "." : path, writtenAt: mtimeMs, state: [folder.writtenAt, ino, size, mtimeMs] };
    } catch {
      return undefined; // deleted meanwhile
    }
  }
}

const entriesOf = (fullPath: string, bytes: number): Dirent[] => {
  if (bytes <= largeFolder) return readdirSync(fullPath, { withFileTypes: true }).slice(0, maxEntries);
  const folder = opendirSync(fullPath, { bufferSize: 1024 });
  const entries: Dirent[] = [];
  try {
    for (let entry = folder.readSync(); entry !== null && entries.length < maxEntries; entry = folder.readSync())
      entries.push(entry);
  } finally {
    folder.closeSync();
  }
  return entries;
};

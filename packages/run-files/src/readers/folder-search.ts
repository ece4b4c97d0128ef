import { type Dirent, lstatSync, opendirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { type FileStamp, isUnchanged, stampOf } from "@skein/cli/node";
import { metricsFile } from "../files/run-file-names.ts";

/** Maximum depth of searched folders, relative to the watched folder. */
const deepest = 8;
/** Maximum number of searched folders. */
const maxFolders = 200_000;
/**
 * Folder size in bytes above which only the first `maxEntries` entries are listed. A folder of this size has tens of
 * thousands of entries.
 */
const largeFolder = 2 ** 20;
const maxEntries = 50_000;
/** Names of folders that the search skips: subfolders of a run, and installed packages. */
const skipped: ReadonlySet<string> = new Set(["checkpoints", "node_modules"]);

/** A run found by the search, with version numbers that show whether the run has changed since the last search. */
export interface FoundRun {
  /** Path relative to the searched folder, with slashes; "." for the searched folder itself. */
  readonly id: string;
  /** Time at which the metrics were last written, in milliseconds since 1970. */
  readonly writtenAt: number;
  /**
   * Version numbers of the folder and of its metrics file. If the numbers are unchanged since the last search, the run
   * need not be read again. They change when metrics are written, and when files are added to or removed from the
   * folder.
   */
  readonly state: readonly number[];
}

interface KnownFolder {
  readonly stamp: FileStamp;
  readonly folders: readonly string[];
}

/**
 * Finds folders with a `metrics.jsonl` below a folder. Links are not followed, so that no file outside of the folder is
 * read. Unreadable folders are skipped.
 */
export class FolderSearch {
  private readonly root: string;
  /** Known folders by path relative to the root. Unchanged folders are not listed again. */
  private known: ReadonlyMap<string, KnownFolder> = new Map();

  constructor(root: string) {
    this.root = root;
  }

  /**
   * Searches the folder tree once.
   *
   * @returns each run when it is found, and undefined for each other folder. Cost: two system calls per unchanged run.
   */
  *sweep(): Generator<FoundRun | undefined, void> {
    const [before, now] = [this.known, new Map<string, KnownFolder>()];
    const waiting: { readonly path: string; readonly depth: number }[] = [{ path: "", depth: 0 }];
    // Breadth first, so that runs near the root are found before a deep unrelated tree is searched.
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
      if (!stats.isDirectory()) return undefined; // the folder was replaced by a link
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
      // An entry that is not a regular file is reported as a run with a fault, so that the run does not disappear
      // silently.
      if (stats === undefined || stats.isSymbolicLink()) return undefined;
      const { ino, size, mtimeMs } = stats;
      return { id: path === "" ? "." : path, writtenAt: mtimeMs, state: [folder.writtenAt, ino, size, mtimeMs] };
    } catch {
      return undefined; // deleted in the meantime
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

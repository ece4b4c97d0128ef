import { FolderSearch } from "./folder-search.ts";

/** Folders with a `metrics.jsonl`, as paths from `root` with slashes; "." for `root` itself. */
export const findRuns = (root: string): string[] =>
  [...new FolderSearch(root).sweep()].flatMap((run) => run?.id ?? []).toSorted();

import { FolderSearch } from "./folder-search.ts";

/**
 * Returns the folders that contain a `metrics.jsonl`, as paths relative to `root` with slashes; "." for `root` itself.
 */
export const findRuns = (root: string): string[] =>
  [...new FolderSearch(root).sweep()].flatMap((run) => run?.id ?? []).toSorted();

import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { metricsFile } from "../run/metrics.ts";

/** Folders below the one that is watched; deeper lies no run. */
const deepest = 8;
/** What a run holds itself, and what is none of ours. */
const passedOver: ReadonlySet<string> = new Set(["checkpoints", "node_modules"]);

/**
 * Folders with a `metrics.jsonl`, as paths from `root` with slashes; "." for root itself. Links are not followed, so
 * that nothing outside is read. A folder that cannot be read is passed over.
 */
export const findRuns = async (root: string): Promise<string[]> => {
  const found: string[] = [];
  const visit = async (path: string, depth: number): Promise<void> => {
    let entries;
    try {
      entries = await readdir(join(root, path), { withFileTypes: true });
    } catch {
      return;
    }
    if (entries.some((entry) => entry.isFile() && entry.name === metricsFile)) found.push(path === "" ? "." : path);
    if (depth === deepest) return;
    for (const entry of entries)
      if (entry.isDirectory() && !entry.name.startsWith(".") && !passedOver.has(entry.name))
        await visit(path === "" ? entry.name : `${path}/${entry.name}`, depth + 1);
  };
  await visit("", 0);
  return found.toSorted();
};

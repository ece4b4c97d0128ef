import { lstatSync, opendirSync } from "node:fs";
import { join } from "node:path";
import { checkpointNames, checkpointsFolder, stepOfName } from "@skein/checkpoints/node";
import { nodeFiles } from "@skein/cli/node";

/** Maximum number of folder entries to read. */
const maxEntries = 100_000;
/** Maximum number of listed checkpoints, and of listed traces. */
const maxListed = 1000;

/** A checkpoint of a run: its step, and the path of its folder. */
export interface ListedCheckpoint {
  readonly step: number;
  readonly path: string;
}

/** Lists complete checkpoints, newest first. */
export const listCheckpoints = (folder: string): ListedCheckpoint[] => {
  try {
    return checkpointNames(nodeFiles, folder)
      .slice(0, maxListed)
      .map((name) => ({ step: stepOfName(name), path: join(checkpointsFolder(folder), name) }));
  } catch {
    return []; // deleted in the meantime, or unreadable
  }
};

/** A trace in the folder of a run, written by `--trace`. */
export interface ListedTrace {
  readonly name: string;
  readonly bytes: number;
  /** Time at which the trace was last written, in milliseconds since 1970. */
  readonly writtenAt: number;
}

/** Lists the trace files in the folder of a run, newest first. */
export const listTraces = (folder: string): ListedTrace[] => {
  const traces: ListedTrace[] = [];
  try {
    const entries = opendirSync(folder);
    try {
      for (let seen = 0; seen < maxEntries && traces.length < maxListed; seen++) {
        const entry = entries.readSync();
        if (entry === null) break;
        if (!entry.isFile() || !/trace.*\.json$/i.test(entry.name)) continue;
        const { size, mtimeMs } = lstatSync(join(folder, entry.name));
        traces.push({ name: entry.name, bytes: size, writtenAt: mtimeMs });
      }
    } finally {
      entries.closeSync();
    }
  } catch {
    return []; // deleted in the meantime, or unreadable
  }
  return traces.toSorted((a, b) => b.writtenAt - a.writtenAt || (a.name < b.name ? -1 : 1));
};

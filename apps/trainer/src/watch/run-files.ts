import { lstat, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { checkpointNames, stepOfName } from "../checkpoint/checkpoint.ts";
import { checkpointsFolder } from "../checkpoint/checkpoint-part.ts";
import { nodeFiles } from "../checkpoint/files.ts";
import { flatJob } from "./flat-job.ts";
import { summaryFile } from "../run/output-folder.ts";
import { provenanceFile } from "../provenance/provenance.ts";

/** What lies beside metrics is small; larger is none of it. */
const mostBytes = 2 ** 22;

const readText = async (path: string): Promise<{ readonly text: string; readonly writtenAt: number } | undefined> => {
  try {
    const facts = await lstat(path);
    if (!facts.isFile() || facts.size > mostBytes) return undefined;
    return { text: await readFile(path, "utf8"), writtenAt: facts.mtimeMs };
  } catch {
    return undefined;
  }
};

const parsed = (text: string | undefined, read: (text: string) => unknown): unknown => {
  try {
    return text === undefined ? undefined : read(text);
  } catch {
    return undefined;
  }
};

/** What lies beside the metrics of a run, as it is now. What is not there or cannot be read is undefined. */
export interface RunFiles {
  /** Of the job, flat: `optimizer.kind` → "adam". */
  readonly options: Readonly<Record<string, string>>;
  readonly summary: Readonly<Record<string, unknown>> | undefined;
  /** Milliseconds since 1970. */
  readonly summaryWrittenAt: number | undefined;
  readonly provenance: Readonly<Record<string, unknown>> | undefined;
}

const objectOf = (value: unknown): Readonly<Record<string, unknown>> | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : undefined;

export const readRunFiles = async (folder: string): Promise<RunFiles> => {
  const [json, yaml, summary, provenance] = await Promise.all(
    ["job.json", "job.yaml", summaryFile, provenanceFile].map((name) => readText(join(folder, name))),
  );
  return {
    options: flatJob(parsed(json?.text, JSON.parse) ?? parsed(yaml?.text, (text) => parse(text, { maxAliasCount: 0 }))),
    summary: objectOf(parsed(summary?.text, JSON.parse)),
    summaryWrittenAt: summary?.writtenAt,
    provenance: objectOf(parsed(provenance?.text, JSON.parse)),
  };
};

/** A checkpoint of a run: its step, and its folder from the run's. */
export interface ListedCheckpoint {
  readonly step: number;
  readonly path: string;
}

/** Checkpoints that are complete, newest first. */
export const listCheckpoints = (folder: string): ListedCheckpoint[] => {
  try {
    return checkpointNames(nodeFiles, folder).map((name) => ({
      step: stepOfName(name),
      path: join(checkpointsFolder(folder), name),
    }));
  } catch {
    return []; // deleted meanwhile, or not to be read
  }
};

/** A trace in the folder of a run: what `--trace` wrote. */
export interface ListedTrace {
  readonly name: string;
  readonly bytes: number;
  /** Milliseconds since 1970. */
  readonly writtenAt: number;
}

/** Trace files in the folder of a run, newest first. */
export const listTraces = async (folder: string): Promise<ListedTrace[]> => {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile() && /trace.*\.json$/i.test(entry.name));
    const traces = await Promise.all(
      files.map(async ({ name }) => {
        const { size, mtimeMs } = await lstat(join(folder, name));
        return { name, bytes: size, writtenAt: mtimeMs };
      }),
    );
    return traces.toSorted((a, b) => b.writtenAt - a.writtenAt || (a.name < b.name ? -1 : 1));
  } catch {
    return []; // deleted meanwhile, or not to be read
  }
};

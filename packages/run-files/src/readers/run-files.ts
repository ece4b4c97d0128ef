import { statSync } from "node:fs";
import { join } from "node:path";
import { type FileStamp, readJsonFile, requireBounded, stampAt } from "@skein/cli/node";
import { readTextFile } from "@skein/collectives/files";
import { jobFile, provenanceFile, summaryFile } from "../files/run-file-names.ts";
import { shownOptions } from "./shown-options.ts";

const yamlJobFile = "job.yaml";

/** Contents of the files next to a run's metrics. A field is undefined if its file is missing or unreadable. */
export interface RunFiles {
  /** Options of the job, by path: `optimizer.kind` → "adam". */
  readonly options: Readonly<Record<string, string>>;
  readonly summary: Readonly<Record<string, unknown>> | undefined;
  /** Time at which the summary was written, in milliseconds since 1970. */
  readonly summaryWrittenAt: number | undefined;
  readonly provenance: Readonly<Record<string, unknown>> | undefined;
  /** Errors of existing files that cannot be read completely, one sentence each. */
  readonly faults: readonly string[];
}

const objectOf = (value: unknown): Readonly<Record<string, unknown>> | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : undefined;

/** Returns the stamps of the files next to the metrics, in a fixed order. Unchanged files are not read again. */
export const stampsIn = (folder: string): (FileStamp | undefined)[] =>
  [jobFile, yamlJobFile, summaryFile, provenanceFile].map((name) => stampAt(join(folder, name)));

/** Reads a job from a YAML file. The YAML parser is loaded only if needed, because few runs have YAML files. */
const readYamlJob = async (path: string): Promise<unknown> => {
  statSync(path); // a missing file is reported before the parser is loaded
  const { maxYamlLength, parseYaml } = await import("@skein/cli/parse-yaml");
  const { text } = readTextFile(path, maxYamlLength, false);
  const root = parseYaml(text, yamlJobFile)[0]?.root;
  requireBounded(root);
  return root;
};

export const readRunFiles = async (folder: string): Promise<RunFiles> => {
  const faults: string[] = [];
  const read = async (name: string, reader: (path: string) => unknown): Promise<unknown> => {
    try {
      return await reader(join(folder, name));
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code !== "ENOENT" && code !== "ENOTDIR") faults.push(`${name} cannot be read: ${message.slice(0, 300)}`);
      return undefined;
    }
  };
  const job = (await read(jobFile, readJsonFile)) ?? (await read(yamlJobFile, readYamlJob));
  const { options, count } = shownOptions(job);
  const shown = Object.keys(options).length;
  if (shown < count) faults.push(`its job has ${count} options, but only ${shown} are shown`);
  return {
    options,
    summary: objectOf(await read(summaryFile, readJsonFile)),
    summaryWrittenAt: stampAt(join(folder, summaryFile))?.writtenAt,
    provenance: objectOf(await read(provenanceFile, readJsonFile)),
    faults,
  };
};

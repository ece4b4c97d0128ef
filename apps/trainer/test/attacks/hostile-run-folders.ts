import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { hasCheckpoint, newestCheckpoint } from "@skein/checkpoints/node";
import { describeError, nodeFiles } from "@skein/cli/node";
import { parseJob } from "@skein/job/node";
import {
  holdOutput,
  MetricFiles,
  originOf,
  readHistograms,
  readMetricLines,
  RoutingFile,
  savedStarts,
} from "@skein/run-files/node";
import { editedJobLine } from "../../src/output-folder/edited-job.ts";
import { recordedJob, saveJob } from "../../src/output-folder/output-folder.ts";
import { savedSweep } from "../../src/sweep/sweep-file.ts";
import type { Attack } from "./attack.ts";
import { countTries } from "./count-tries.ts";
import type { Draw } from "./draw.ts";

const job = parseJob(
  `name: digits
batch: 64
epochs: 3
data: {kind: mnist}
model: {kind: mlp, hidden: [16, 32]}
optimizer: {kind: adamw}
learningRate: {peak: 0.002}
`,
  "job.yaml",
);
const settings = { job: "a", search: "grid", space: [], seed: 0, parallel: 1 } as const;
const since = "2026-01-01T00:00:00.000Z";
const times = { patience: 0, pollMilliseconds: 1, beatMilliseconds: 1e6, silence: 0 };

/** Valid content of a file in a run folder, and the reader of the file. */
interface RunFile {
  readonly sound: string;
  readonly read: (folder: string, path: string) => unknown;
}

const holdAndLetGo = async (folder: string): Promise<void> => {
  const letGo = await holdOutput(folder, { what: "a run", times });
  letGo();
};
const rewindMetrics = (folder: string): void => new MetricFiles(folder, 1).close();

const files: Readonly<Record<string, RunFile>> = {
  "job.json": { sound: JSON.stringify(job), read: recordedJob },
  "provenance.json": {
    sound: JSON.stringify({ command: ["run", "job.yaml"], folder: "/", startedAt: since, earlier: [{ folder: "/" }] }),
    read: async (folder, path) => [editedJobLine(folder), await originOf(folder), JSON.stringify(savedStarts(path))],
  },
  ".held-by.json": { sound: JSON.stringify({ host: "h", pid: 1, since, id: "i" }), read: holdAndLetGo },
  "sweep.json": {
    sound: JSON.stringify({ format: "skein-sweep", version: 1, name: "n", settings, trials: [] }),
    read: (folder) => savedSweep(folder, settings),
  },
  "routing.json": {
    sound: JSON.stringify({ a: { maxSteps: 3, steps: [{ step: 1, numExperts: 2, numChoices: 1, choices: [0, 1] }] } }),
    read: (folder) => new RoutingFile(folder, 3, 10),
  },
  "metrics.jsonl": {
    sound: '{"type":"step","step":1,"loss":2}\n{"type":"step","step":2,"loss":1}\n',
    read: (folder, path) => [readMetricLines(path), rewindMetrics(folder)],
  },
  "metrics.jsonl.tmp": {
    sound: "",
    read: (folder) => {
      writeFileSync(join(folder, "metrics.jsonl"), '{"type":"step","step":1}\n');
      rewindMetrics(folder);
    },
  },
  "job.json.tmp": { sound: "", read: (folder) => saveJob(folder, job) },
  "histograms.jsonl": {
    sound: '{"type":"parameter","step":1,"path":"a","weights":{"edges":[0,1],"counts":[1]}}\n',
    read: (folder) => [readHistograms(folder), rewindMetrics(folder)],
  },
  checkpoints: {
    sound: "",
    read: (folder) => hasCheckpoint(nodeFiles, folder) && newestCheckpoint(nodeFiles, folder, () => undefined),
  },
};

const mutated = (text: string, draw: Draw): string => {
  const pieces = [
    "[",
    "]",
    "{",
    "}",
    '"',
    "null",
    "-1",
    "1e999",
    "\u0000",
    "\n",
    "__proto__",
    "5",
    '{"a":1}',
    "[]",
    '""',
  ];
  let result = text;
  for (let changes = 1 + draw(3); changes > 0; changes--) {
    const at = draw(result.length + 1);
    result = result.slice(0, at) + pieces[draw(pieces.length)]! + result.slice(at + draw(12));
  }
  return result;
};

const victim = "a file of another's\n";

/** Replacements for a file of the run, by name. */
const forms: Readonly<Record<string, (path: string, sound: string, draw: Draw) => void>> = {
  mutated: (path, sound, draw) => writeFileSync(path, mutated(sound, draw)),
  "nested lists": (path) => writeFileSync(path, "[".repeat(1e5) + "]".repeat(1e5)),
  "nested objects": (path) => writeFileSync(path, `${'{"earlier":['.repeat(1e5)}${"]}".repeat(1e5)}`),
  "a nested list in it": (path, sound) =>
    writeFileSync(path, sound.replace(/:("[^"]*"|\d+)/, `:${"[".repeat(1e5)}${"]".repeat(1e5)}`)),
  torn: (path, sound, draw) => writeFileSync(path, sound.slice(0, draw(sound.length + 1))),
  zeros: (path) => writeFileSync(path, new Uint8Array(5000)),
  "another value": (path, _, draw) => writeFileSync(path, ["null", "5", "[]", '""', "{}", '{"earlier":5}'][draw(6)]!),
  "a folder": (path) => void mkdirSync(path),
  "a pipe": (path) => void execFileSync("mkfifo", [path]),
  "a file without an end": (path) => symlinkSync("/dev/zero", path),
  "a link to itself": (path) => symlinkSync(path, path),
  "a link to another's file": (path) => symlinkSync(join(path, "..", "..", "victim"), path),
};

export const hostileRunFolders: Attack = {
  name: "hostile-run-folders",
  what: "a file of a run folder is replaced: it is skipped or reported in a line, and nothing else is written",
  fewTries: 120,
  tries: 5000,
  run: (input) => {
    const kinds = Object.entries(files);
    const shapes = Object.entries(forms);
    writeFileSync(join(input.folder, "victim"), victim);
    return countTries(input, async (number, draw) => {
      const [name, { sound, read }] = kinds[number % kinds.length]!;
      const [form, make] = shapes[Math.floor(number / kinds.length) % shapes.length]!;
      const folder = join(input.folder, "run");
      mkdirSync(folder);
      const path = join(folder, name);
      make(path, sound, draw);
      let [counted, harm]: [string, string | undefined] = [`${name} passed over`, undefined];
      try {
        await read(folder, path);
      } catch (error) {
        const { kind, message } = describeError(error);
        counted = `${name} reported`;
        if (kind === "invariant" || message.length > 4000) harm = `${name}, ${form}: ${message.slice(0, 200)}`;
      }
      if (readFileSync(join(input.folder, "victim"), "utf8") !== victim)
        harm = `${name}, ${form}: another's file written`;
      rmSync(folder, { recursive: true });
      return { counted, harm };
    });
  },
};

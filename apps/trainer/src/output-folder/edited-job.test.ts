import { mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readJob } from "../job-file/load-job.ts";
import { editedJobLine } from "./edited-job.ts";
import { saveJob } from "./output-folder.ts";

const text = `name: tiny
batch: 32
steps: 30
data: { kind: mnist, trainSamples: 640, testSamples: 203 }
model: { kind: mlp, hidden: [16] }
optimizer: { kind: adamw }
learningRate: { peak: 0.005 }
evaluation: { batch: 100 }
`;
const began = new Date("2026-01-01T00:00:00Z");
const later = new Date("2026-01-02T00:00:00Z");

let folder: string;
let output: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "skein-edited-"));
  output = folder;
  writeFileSync(join(folder, "job.yaml"), text);
  saveJob(output, { ...readJob(join(folder, "job.yaml")), steps: 60, batch: 16, backend: "cpu" });
  edit(text, began);
  provenance({ command: ["run", "job.yaml", "--set", "batch=16", "--steps", "60", "--output", "out"] });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const edit = (content: string, at = later): void => {
  writeFileSync(join(folder, "job.yaml"), content);
  utimesSync(join(folder, "job.yaml"), at, at);
};
const provenance = ({ command, earlier = [] }: { command: string[]; earlier?: object[] }): void =>
  writeFileSync(
    join(output, "provenance.json"),
    JSON.stringify({ command, folder, startedAt: began.toISOString(), earlier }),
  );

test("a job file edited after its run began is reported, with the keys that differ", () => {
  edit(text.replace("[16]", "[64]").replace("batch: 32", "batch: 8"));
  const line = `${join(folder, "job.yaml")} was edited after the run began (model.hidden: [16], now [64]), but a run resumes with ${join(output, "job.json")}; change it with --set key=value, or start a new run`;
  expect(editedJobLine(output)).toBe(line);
  // A second resume reports the difference again.
  provenance({
    command: ["resume", "out"],
    earlier: [{ command: ["run", "job.yaml", "--set", "batch=16", "--steps", "60"], folder, startedAt: began }],
  });
  expect(editedJobLine(output)).toBe(line);
});

test("an edited file that can no longer be read is reported, too", () => {
  edit("name: [");
  expect(editedJobLine(output)).toMatch(
    /job\.yaml was edited after the run began and cannot be compared with .*job\.json/,
  );
});

test.each<[what: string, change: () => void]>([
  ["not edited since", () => undefined],
  ["edited in a comment alone", () => edit(`# a comment\n${text}`)],
  ["edited in what the command gave", () => edit(text.replace("steps: 30", "steps: 90"))],
  ["gone", () => rmSync(join(folder, "job.yaml"))],
  ["that of a program", () => provenance({ command: [] })],
  ["unknown", () => rmSync(join(output, "provenance.json"))],
])("nothing is reported if the file is %s", (_, change) => {
  change();
  expect(editedJobLine(output)).toBeUndefined();
});

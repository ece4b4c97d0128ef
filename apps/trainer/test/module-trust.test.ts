import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, expect, test, vi } from "vitest";
import { prepare } from "../src/preparation/prepare.ts";
import { loadJob, readJobs } from "../src/job-file/load-job.ts";
import { noModulesVariable } from "../src/modules/load-module.ts";
import { codeLine } from "../src/modules/module-trust.ts";
import { recordedJob, saveJob } from "../src/output-folder/output-folder.ts";
import { jobFolder, skeinTrain } from "./cli.ts";

const { folder, remove } = jobFolder();
afterAll(remove);
afterEach(() => vi.unstubAllEnvs());

const marker = join(folder, "loaded");
const file = join(folder, "foreign.yaml");
writeFileSync(
  file,
  `name: foreign
batch: 4
steps: 2
data: { kind: mnist, trainSamples: 40, testSamples: 20 }
model: { kind: mlp, hidden: [4] }
optimizer: { kind: module, file: ./optimizer.mjs }
callbacks: { kind: module, file: ./callbacks.mjs }
learningRate: { peak: 0.1 }
`,
);
for (const name of ["optimizer.mjs", "callbacks.mjs"])
  writeFileSync(
    join(folder, name),
    `import { writeFileSync } from "node:fs";\nwriteFileSync(${JSON.stringify(marker)}, "");\nexport default 5;\n`,
  );
const named = `optimizer.file ${join(folder, "optimizer.mjs")}, callbacks.file ${join(folder, "callbacks.mjs")}`;

test("the code that a job names is listed, and none of it loaded", () => {
  expect(codeLine(readJobs(file))).toContain(named);
  expect(codeLine(readJobs(join(folder, "job.yaml")))).toBeUndefined();
  expect(existsSync(marker)).toBe(false);
});

test("a process that refuses modules loads none, however a job arrives", async () => {
  vi.stubEnv(noModulesVariable, "1");
  await expect(loadJob(file)).rejects.toThrow(`the job runs code, which --no-modules refuses: ${named}; read the code`);
  saveJob(folder, readJobs(file)[0]!);
  await expect(prepare(recordedJob(folder))).rejects.toThrow("is code, which --no-modules refuses");
  await loadJob(join(folder, "job.yaml"));
  expect(existsSync(marker)).toBe(false);
});

test("validate lists the code that it runs; with --no-modules it runs none", async () => {
  const refused = await skeinTrain(folder, "validate", "foreign.yaml", "--no-modules");
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining(named) as string]);
  expect(existsSync(marker)).toBe(false);
  const { stderr } = await skeinTrain(folder, "validate", "foreign.yaml");
  expect(stderr).toContain(`runs code that the job names: ${named}, and its imports; --no-modules refuses such code\n`);
});

test.each([
  "run foreign.yaml --dry-run",
  "run foreign.yaml",
  "doctor foreign.yaml",
  "evaluate .",
  "export . --output x",
])("%s --no-modules runs none", { tags: "full" }, async (command) => {
  saveJob(folder, readJobs(file)[0]!);
  const { code, stderr } = await skeinTrain(folder, ...command.split(" "), "--no-modules");
  expect([code, stderr]).toEqual([2, expect.stringContaining(named) as string]);
  const ended = await skeinTrain(folder, ...command.split(" "));
  if (command !== "run foreign.yaml") expect(ended.stderr).toContain(`runs code that the job names: ${named}`);
});

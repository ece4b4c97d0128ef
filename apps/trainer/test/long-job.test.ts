import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { recordedJob } from "../src/output-folder/output-folder.ts";
import { jobFolder, skeinTrain, stepLosses } from "./cli.ts";

const { folder: root, remove } = jobFolder();
const folder = join(root, "f".repeat(200), "g".repeat(200));
const numFiles = 350;

/** Creates a job of a few KB whose file names become long as absolute paths. */
beforeAll(() => {
  mkdirSync(join(folder, "t"), { recursive: true });
  const files = Array.from({ length: numFiles }, (_, file) => `t/${file}.txt`);
  for (const file of files) writeFileSync(join(folder, file), "the whale is here. ".repeat(2));
  writeFileSync(
    join(folder, "job.yaml"),
    `name: long
ranks: 1
backend: cpu
batch: 2
steps: 2
data: { kind: text, file: [${files.join(", ")}], window: 8 }
model: { kind: gpt, layers: 1, heads: 1, width: 8 }
optimizer: { kind: sgd }
learningRate: { peak: 0.1 }
checkpoint: { everySteps: 1 }
`,
  );
});
afterAll(remove);

test("a job longer than an environment variable can be runs in processes, and can be read again", async () => {
  const { code, stderr } = await skeinTrain(folder, "run", "job.yaml", "--output", "o", "--transport", "tcp");
  expect([code, stderr.match(/^\s+at .*/m)]).toEqual([0, null]);
  const job = recordedJob(join(folder, "o"));
  expect(JSON.stringify(job).length).toBeGreaterThan(2 ** 17);
  expect(job.data).toMatchObject({ kind: "text", file: { length: numFiles } });
  expect(stepLosses(join(folder, "o"))).toHaveLength(2);
});

test.each(["resume o --steps 4", "evaluate o", "validate o/job.json", "run o/job.json --output p"])(
  "%s reads it",
  { tags: "full" },
  async (command) => {
    const { code, stderr } = await skeinTrain(folder, ...command.split(" "));
    expect([code, stderr.match(/cannot be read.*|^\s+at .*/m)]).toEqual([0, null]);
  },
);

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { loadJob } from "../src/job-file/load-job.ts";
import { prepare } from "../src/preparation/prepare.ts";
import { jobFolder, skeinTrain } from "./cli.ts";

let folder: string;
let remove: () => void;
beforeEach(() => ({ folder, remove } = jobFolder()));
afterEach(() => remove());

test("a tokenizer is trained on texts, and a job reads them with it", async () => {
  const stories = ["the sea and the ship", "the ship and the sea", "a sea"].map((text) => JSON.stringify({ text }));
  writeFileSync(join(folder, "stories.jsonl"), `${stories.join("\n")}\n{\n`);
  const args = ["tokenizer", "train", "stories.jsonl", "--vocabulary", "270", "--output", "words/tokenizer.json"];

  const damaged = await skeinTrain(folder, ...args);
  expect(damaged.code).toBe(2);
  expect(damaged.stderr).toMatch(/^stories\.jsonl:4: the line is not valid JSON; [^\n]*\n$/);
  expect(readdirSync(folder)).not.toContain("words");

  const { code, stdout, stderr } = await skeinTrain(folder, ...args, "--skip-damaged", "--json");
  expect([code, stderr]).toEqual([0, ""]);
  expect(JSON.parse(stdout)).toMatchObject({ output: "words/tokenizer.json", documents: 3, damaged: 1 });
  const before = readFileSync(join(folder, "words/tokenizer.json"));

  writeFileSync(
    join(folder, "job.yaml"),
    `name: words
backend: cpu
batch: 1
steps: 1
data: { kind: text, file: stories.jsonl, skipDamaged: true, tokenizer: words, window: 4, testFraction: 0.4 }
model: { kind: gpt, layers: 1, heads: 1, width: 8 }
optimizer: { kind: adam }
learningRate: { peak: 0.01 }
`,
  );
  const { data } = await prepare(await loadJob(join(folder, "job.yaml"), []));
  const { tokens } = JSON.parse(stdout) as { readonly tokens: number };
  expect(data).toMatchObject({ predicts: "tokens", classes: tokens });
  expect(data.remarks).toHaveLength(2);

  const again = await skeinTrain(folder, ...args, "--skip-damaged");
  expect(again.stderr).toMatch(/^words\/tokenizer\.json: the file already exists; remove it, or name another folder/);
  expect(readFileSync(join(folder, "words/tokenizer.json"))).toEqual(before);
});

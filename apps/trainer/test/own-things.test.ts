import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { checkpointBytes, metricLines, skeinTrain, stepLosses } from "./cli.ts";

let folder: string;
beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "skein-own-"))));
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const write = (files: Readonly<Record<string, string>>): void => {
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
};

const job = `name: own
seed: 5
ranks: 2
backend: cpu
batch: 30
steps: 12
data: { kind: module, file: ./my-data.ts, options: { count: 120 } }
model: { kind: module, file: ./my-model.js, export: bigger, options: { hidden: 8 } }
optimizer: { kind: adam }
learningRate: { peak: 0.01 }
evaluation: { batch: 16 }
checkpoint: { everySteps: 4 }
`;

const data = `import { arrayRecords } from "@skein/data";
import { NdArray } from "@skein/tensor-core";
const points = (count: number, from: number) => arrayRecords({
  inputs: NdArray.from(Array.from({ length: 2 * count }, (_, i) => Math.sin(from + i * i)), [count, 2]),
  labels: NdArray.from(Array.from({ length: count }, (_, i) => (Math.sin(from + 4 * i * i) > 0 ? 1 : 0)), [count], "i32"),
});
export default ({ count }: { count: number }) => ({ train: points(count, 0), test: points(33, 1), predicts: "classes", classes: 2 });
`;

const model = `import { mlp } from "@skein/models";
import { factor } from "./factor.js";
export const bigger = (task, { hidden }) => mlp({ sizes: [...task.inputs.shape, factor * hidden, task.classes] });
`;

/** Files of a typical user folder: a job, a model in JavaScript that imports another file, and data in TypeScript. */
const ownFiles = {
  "job.yaml": job,
  "my-data.ts": data,
  "my-model.js": model,
  "factor.js": "export const factor = 2;\n",
};

test("a job with a user's model and data trains on threads and on processes, with the same bits, from any folder", async () => {
  write(ownFiles);
  const threads = await skeinTrain(tmpdir(), "run", join(folder, "job.yaml"), "--output", join(folder, "threads"));
  expect(threads.stderr).toContain("own: 12 steps on 2 ranks");
  expect(threads.code).toBe(0);
  const tcp = await skeinTrain(folder, "run", "job.yaml", "--output", "tcp", "--transport", "tcp");
  expect(tcp.code).toBe(0);
  expect(checkpointBytes(join(folder, "tcp"), 12)).toEqual(checkpointBytes(join(folder, "threads"), 12));
  expect(stepLosses(join(folder, "tcp"))).toEqual(stepLosses(join(folder, "threads")));
  expect(metricLines(join(folder, "tcp")).filter(({ type }) => type === "evaluation")).toHaveLength(1);

  // The imports of a module are part of the job.
  const differs = "the job differs from the one that wrote the checkpoint";
  expect((await skeinTrain(folder, "resume", "threads")).stderr).not.toContain(differs);
  write({ "factor.js": "export const factor = 1 + 1;\n" });
  const changed = await skeinTrain(folder, "resume", "threads");
  expect(changed.stderr).toContain(differs);
  expect(changed.code).toBe(0);
});

describe("a faulty module gives one line with the file and the location, and leaves no files behind", () => {
  test.each<[string, Readonly<Record<string, string>>, RegExp]>([
    [
      "a module that is not there",
      { "job.yaml": job.replace("my-model", "no-model") },
      /^model\.file \S+no-model\.js cannot be loaded: .*no-model\.js.*/,
    ],
    [
      "JavaScript that cannot be parsed, in a file that the module imports",
      { "factor.js": "\nexport const factor = (;\n" },
      /^model\.file \S+my-model\.js cannot be loaded: SyntaxError: Unexpected token ';' \(at \S+factor\.js:2\); correct it there$/,
    ],
    [
      "a missing export",
      { "my-model.js": "export const smaller = () => 0;" },
      /its export "bigger" is missing, but must be a function; set model\.export to one of the functions that it exports: smaller$/,
    ],
    [
      "a factory that throws",
      { "my-data.ts": "export default () => {\n  null!.length;\n};" },
      /^data\.file \S+: TypeError: Cannot read properties of null.* \(at \S+my-data\.ts:2:\d+\); correct it there$/,
    ],
    [
      "shapes that do not fit, in the loss",
      {
        "my-model.js": `import { mlp } from "@skein/models";
import { matmul, sum } from "@skein/tensor-core";
export const bigger = () => ({
  ...mlp({ sizes: [2, 4, 2] }),
  loss: (params, state, { inputs }) => {
    return [sum(matmul(inputs, inputs)), state];
  },
});
`,
      },
      /^model\.file \S+: loss: matmul: .*do not fit.*\n {4}at \S+my-model\.js:6:\d+$/,
    ],
  ])("%s", async (_, files, line) => {
    write({ ...ownFiles, ...files });
    const { code, stderr, stdout } = await skeinTrain(folder, "run", "job.yaml", "--output", "run");
    expect(stderr.trimEnd()).toMatch(line);
    expect(stderr.trimEnd().split("\n").length).toBeLessThanOrEqual(2);
    expect(stdout).toBe("");
    expect(code).toBe(2);
    expect(() => readFileSync(join(folder, "run/job.json"))).toThrow("ENOENT");
  });
});

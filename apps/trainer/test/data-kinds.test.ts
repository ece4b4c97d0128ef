import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { loadJob } from "../src/job-file/load-job.ts";
import { train, type TrainJob } from "../src/index.ts";
import { prepare } from "../src/preparation/prepare.ts";
import { checkpointBytes, jobFolder, skeinTrain, stepLosses } from "./cli.ts";

const sampleOf = (path: string): string =>
  fileURLToPath(new URL(`../../../packages/data/test/${path}`, import.meta.url));

let folder: string;
let remove: () => void;
beforeEach(() => ({ folder, remove } = jobFolder()));
afterEach(() => remove());

const mlp = "{ kind: mlp, hidden: [4] }";

/** A kind of data source, and a change of its files that a run must detect. */
interface Kind {
  readonly name: string;
  readonly data: string;
  readonly model: string;
  readonly put: (version: number) => void;
}

const numpy = (name: string): Kind => ({
  name: `numpy ${name}`,
  data: "{ kind: numpy, file: digits.npz, shape: [3, 2, 1], testFraction: 0.25 }",
  model: mlp,
  put: (version) => copyFileSync(sampleOf(`numpy/${version === 1 ? name : "stored.npz"}`), join(folder, "digits.npz")),
});

const gpt = "{ kind: gpt, layers: 1, heads: 1, width: 8 }";
const sea = (version: number): string => "the sea is wide, and the ship is small. ".repeat(3 + version);

const lines: Kind = {
  name: "text of lines and files",
  data: "{ kind: text, file: [sea.jsonl, more], field: said, window: 8, skipDamaged: true }",
  model: gpt,
  put: (version) => {
    mkdirSync(join(folder, "more"), { recursive: true });
    writeFileSync(join(folder, "sea.jsonl"), `{}\n${JSON.stringify({ said: sea(version) })}\n{`);
    writeFileSync(join(folder, "more/b.txt"), sea(1));
  },
};

const tokens: Kind = {
  name: "tokens",
  data: "{ kind: tokens, file: train.bin, testFile: val.bin, window: 8, vocabulary: 128 }",
  model: gpt,
  put: (version) => {
    for (const [name, number] of [
      ["train", version],
      ["val", 1],
    ] as const)
      writeFileSync(join(folder, `${name}.bin`), Uint16Array.from(Buffer.from(sea(number))));
  },
};

const manifest: Kind = {
  name: "image-manifest",
  data: "{ kind: image-manifest, file: labels.csv, size: 4, augment: { flip: true } }",
  model: mlp,
  put: (version) => {
    for (const name of ["plain.png", "plain.jpg"]) copyFileSync(sampleOf(`images/${name}`), join(folder, name));
    const [one, other] = version === 1 ? ["a", "b"] : ["b", "a"];
    const rows = ["plain.png,a,train", "plain.jpg,b,train", `./sub/../one.png,${one},test`, `two.jpg,${other},test`];
    copyFileSync(sampleOf("images/plain.png"), join(folder, "one.png"));
    copyFileSync(sampleOf("images/grey-16.png"), join(folder, "two.jpg"));
    writeFileSync(join(folder, "labels.csv"), `path,label,split\n${rows.join("\n")}\n`);
  },
};

const kinds: readonly Kind[] = [numpy("zip64.npz"), lines, tokens, manifest];

const write = ({ data, model }: Kind): void =>
  writeFileSync(
    join(folder, "job.yaml"),
    `name: kinds
ranks: 2
backend: cpu
batch: 2
steps: 4
data: ${data}
model: ${model}
optimizer: { kind: adam }
learningRate: { peak: 0.01 }
evaluation: { batch: 2 }
`,
  );

const job = (): ReturnType<typeof loadJob> => loadJob(join(folder, "job.yaml"), []);

describe.each(kinds)("data of kind $name", (kind) => {
  beforeEach(() => {
    kind.put(1);
    write(kind);
  });

  test("trains on two ranks, and the content of its files is in the hash of the job, but not their location", async () => {
    const { jobHash, dataDigest } = await prepare(await job());
    expect(dataDigest).toMatch(/^[\da-f]{64}$/);
    const { step } = await train((await job()) as TrainJob, { output: join(folder, "threads") });
    expect(step).toBe(4);
    expect(stepLosses(join(folder, "threads")).every(Number.isFinite)).toBe(true);
    kind.put(2);
    expect((await prepare(await job())).jobHash).not.toBe(jobHash);
    kind.put(1);
    expect((await prepare(await job())).jobHash).toBe(jobHash);
  });

  test("gives the same bits on threads and processes", { tags: "full" }, async () => {
    for (const transport of ["threads", "tcp"]) {
      const { code, stderr } = await skeinTrain(
        folder,
        "run",
        "job.yaml",
        "--output",
        transport,
        "--set",
        `transport=${transport}`,
      );
      expect(code, stderr).toBe(0);
    }
    expect(checkpointBytes(join(folder, "tcp"), 4)).toEqual(checkpointBytes(join(folder, "threads"), 4));
  });
});

test("NumPy arrays are in a file or a folder, not both", async () => {
  write({ ...kinds[0]!, data: "{ kind: numpy }" });
  await expect(async () => job()).rejects.toThrow("neither file nor folder is given; give file: an .npz");
  write({ ...kinds[0]!, data: "{ kind: numpy, file: a.npz, folder: b }" });
  await expect(async () => job()).rejects.toThrow("both file and folder are given");
});

test("data other than byte images are not shifted or mirrored", async () => {
  kinds[0]!.put(1);
  write({ ...kinds[0]!, data: "{ kind: numpy, file: digits.npz, shape: [3, 2, 1], augment: { flip: true } }" });
  await expect(async () => prepare(await job())).rejects.toThrow(
    "data.augment: it changes images of bytes [height, width, channels], but the inputs are i32[3, 2, 1]; remove it",
  );
});

test.each([
  { kind: "mnist", data: "{ kind: mnist, trainSamples: 8, testSamples: 8 }", model: mlp },
  { kind: "moby-dick", data: "{ kind: moby-dick, window: 8, trainSamples: 8, testSamples: 8 }", model: gpt },
])("the package of data set $kind is found from the sources of the trainer", ({ data, model }) => {
  const options = { data, model, batch: "4", evaluation: "{ batch: 4 }", optimizer: "{ kind: sgd }" };
  const set = Object.entries(options).flatMap(([key, value]) => ["--set", `${key}=${value}`]);
  // Without NODE_PATH, which the test runner may have set, and from a folder that has no packages.
  const { NODE_PATH: _, ...env } = process.env;
  const main = fileURLToPath(new URL("../src/main.ts", import.meta.url));
  const { status, stderr } = spawnSync(
    process.execPath,
    ["--no-memory-protection-keys", main, "run", "job.yaml", "--ranks", "1", "--steps", "1", ...set],
    { cwd: folder, env, encoding: "utf8" },
  );
  expect(stderr).not.toContain("is not installed");
  expect({ status, stderr }).toMatchObject({ status: 0 });
});

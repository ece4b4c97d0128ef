import { appendFileSync, copyFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { train, type TrainJob, type TrainOptions } from "../src/index.ts";
import { checkpointNames, jobFolder } from "./cli.ts";
import { expectCloseLosses, expectSameEnd, messageOf } from "./run-ends.ts";

let folder: string;
let remove: () => void;
beforeEach(() => {
  ({ folder, remove } = jobFolder());
  for (let shard = 0; shard < 3; shard++) {
    const lines = Array.from({ length: 30 + shard }, (_, i) =>
      JSON.stringify({ text: `whale ${shard} ${i} sea`.repeat(3) }),
    );
    writeFileSync(join(folder, `${shard}.jsonl.gz`), gzipSync(lines.join("\n")));
  }
  writeFileSync(join(folder, "held.txt"), "a whale in the sea ".repeat(8));
});
afterEach(() => remove());

const output = (name: string): string => join(folder, name);

const texts = (stream: object = {}, more: Partial<TrainJob> = {}): TrainJob => ({
  ranks: 2,
  backend: "cpu",
  batch: 4,
  steps: 10,
  data: {
    kind: "text",
    file: join(folder, "{0..2}.jsonl.gz"),
    testFile: join(folder, "held.txt"),
    window: 8,
    stream: { shuffleBuffer: 12, ...stream },
  },
  model: { kind: "gpt", layers: 1, heads: 2, width: 8 },
  optimizer: { kind: "adam" },
  learningRate: { peak: 0.01, decay: "constant" },
  evaluation: { batch: 4 },
  checkpoint: { everySteps: 4 },
  ...more,
});

describe("streamed texts", () => {
  test("train on any number of ranks, and resume on another number after an interruption", async () => {
    const { summary } = await train(texts(), { output: output("whole") });
    expect(summary!.testLoss).toBeLessThan(6);
    const stop = new AbortController();
    const cut: TrainOptions = { output: output("cut"), onStep: ({ step }) => step === 5 && stop.abort() };
    await train(texts({}, { ranks: 1 }), { ...cut, signal: stop.signal });
    expect(checkpointNames(output("cut")).at(-1)).toMatch(/step-0000000[5-9]/);
    await train(texts(), { ...cut, resume: true });
    expectCloseLosses(output("cut"), output("whole"), 1e-4);
  });

  test("that do not match the position of a checkpoint, or are read differently, are refused in one line", async () => {
    const one: TrainOptions = { output: output("run"), resume: true };
    await train(texts({}, { ranks: 1 }), one);
    const goOn = (stream: object, more: Partial<TrainJob> = {}): Promise<string> =>
      messageOf(train(texts(stream, { ranks: 1, steps: 12, ...more }), one));
    expect(await goOn({ shardsAtOnce: 1 })).toMatch(
      /has positions in 2 files, but data.stream.shardsAtOnce is 1; set shardsAtOnce to 2, or leave it out$/,
    );
    expect(await goOn({}, { batch: 5 })).toMatch(
      /has positions in 2 files, which cannot provide equal parts of a batch of 5; use a multiple of 2$/,
    );
    appendFileSync(join(folder, "1.jsonl.gz"), gzipSync('\n{"text": "more"}'));
    expect(await goOn({})).toMatch(
      /has a position in files other than those that the job names now, judged by names and sizes; name the same files, or start a new run$/,
    );
    const data = { kind: "text", file: join(folder, "held.txt"), window: 8 } as const;
    expect(await goOn({}, { data })).toMatch(
      /was written by a run with data.stream, but the job has no data.stream; resume with the job that wrote it$/,
    );
  });

  test("whose file disappears end the run after a step, saved; it resumes once the file is back", {
    tags: "full",
  }, async () => {
    const path = join(folder, "1.jsonl.gz");
    const long = texts({ shuffleBuffer: 2 }, { steps: 100_000, checkpoint: {} });
    const message = await messageOf(
      train(long, {
        output: output("gone"),
        onStep: ({ step }) => {
          if (step === 3) renameSync(path, `${path}.away`);
        },
      }),
    );
    expect(message).toMatch(
      /^rank [01]: \S+1\.jsonl\.gz cannot be read \(ENOENT.*\); check that the file still exists and is complete; the state after step \d+ is saved; .* resume /,
    );
    const step = Number(/after step (\d+) is saved/.exec(message)![1]);
    renameSync(`${path}.away`, path);
    const more = { steps: step + 3, checkpoint: {} };
    await train(texts({ shuffleBuffer: 2 }, more), { output: output("gone"), resume: true });
    await train(texts({ shuffleBuffer: 2 }, more), { output: output("whole") });
    expectSameEnd(output("gone"), output("whole"), step + 3);
  });
});

test("streamed images are augmented, skipped where they cannot be used, and resume, too", async () => {
  const shards = fileURLToPath(new URL("../../../packages/data/test/shards", import.meta.url));
  for (const name of ["gnu", "pax"]) copyFileSync(join(shards, `${name}.tar`), join(folder, `${name}.tar`));
  copyFileSync(join(shards, "others.tar"), join(folder, "others.tar"));
  const job = (steps: number): TrainJob =>
    texts(
      {},
      {
        steps,
        checkpoint: {},
        data: {
          kind: "webdataset",
          file: ["gnu", "pax", "others"].map((name) => join(folder, `${name}.tar`)),
          testFile: join(folder, "pax.tar"),
          size: 4,
          channels: 1,
          skipDamaged: true,
          augment: { crop: 1, flip: true },
          stream: { shuffleBuffer: 6, classes: 5 },
        },
        model: { kind: "mlp", hidden: [4] },
      },
    );
  const notes: string[] = [];
  const { summary } = await train(job(12), { output: output("whole"), onNote: (line) => notes.push(line) });
  expect(notes.filter((line) => / is skipped: it has no (image|label)$/.test(line))).not.toEqual([]);
  expect(summary!.leftOutSamples).toBeGreaterThan(0);
  await train(job(5), { output: output("cut") });
  await train(job(12), { output: output("cut"), resume: true });
  expectSameEnd(output("cut"), output("whole"), 12);
});

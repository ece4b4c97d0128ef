import { execFileSync, execSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  checkpointBytes,
  checkpointNames,
  disturbed,
  jobFolder,
  metricLines,
  skeinTrain,
  start,
  tooLarge,
  until,
} from "./cli.ts";
import { expectSameEnd, expectTold } from "./run-ends.ts";

let folder: string;
let remove: () => void;
beforeEach(() => ({ folder, remove } = jobFolder()));
afterEach(() => remove());

const long = ["--steps", "200", "--set", "checkpoint.keep=100"];
/**
 * Returns whether the run has saved a checkpoint of `step`. Steps are far enough from the end that the run is still
 * running when the test acts.
 */
const reached = (output: string, step: number) => (): boolean =>
  checkpointNames(join(folder, output)).includes(`step-${String(step).padStart(8, "0")}`);

describe("a run that was interrupted and resumed ends with the bits of an uninterrupted one", () => {
  const expectSame = (output: string): void => expectSameEnd(join(folder, output), join(wholeFolder, "whole"), 200);
  const { folder: wholeFolder, remove: removeWhole } = jobFolder();
  afterAll(removeWhole);
  beforeAll(async () => {
    expect((await skeinTrain(wholeFolder, "run", "job.yaml", ...long, "--output", "whole")).code).toBe(0);
    expect(Object.keys(checkpointBytes(join(wholeFolder, "whole"), 200))).toEqual([
      "rank-0.safetensors",
      "rank-1.safetensors",
      "shared.safetensors",
    ]);
  });

  test("by kill -9", async () => {
    const running = start(folder, "run", "job.yaml", ...long, "--output", "cut");
    await until(running, reached("cut", 30));
    running.child.kill("SIGKILL");
    expect((await disturbed(running)).signal).toBe("SIGKILL");
    const resumed = await skeinTrain(folder, "resume", "cut");
    expect(resumed.stderr).toContain("resuming from cut/checkpoints/step-");
    expect(resumed.code).toBe(0);
    expectSame("cut");
  });

  const stopAndResume = async (signal: "SIGINT" | "SIGTERM", expected: number): Promise<void> => {
    const running = start(folder, "run", "job.yaml", ...long, "--set", "checkpoint.everySteps=30", "--output", "cut");
    await until(running, reached("cut", 30));
    running.child.kill(signal);
    const { code, stderr, stdout } = await disturbed(running);
    expect(stderr).toContain("stopping after this step and saving");
    expect(stderr).toMatch(
      /stopped after step \d+ of 200; saved cut\/checkpoints\/step-\d{8}; continue with: \S.* resume cut\n$/,
    );
    expect(code).toBe(expected);
    expect(stdout).toBe("");
    const last = metricLines(join(folder, "cut")).at(-1)!;
    expect(last).toMatchObject({ type: "checkpoint", step: Number(/after step (\d+)/.exec(stderr)![1]) });
    execSync(/continue with: (.*)/.exec(stderr)![1]!, { cwd: folder, stdio: "ignore" }); // as pasted into a shell
    expectSame("cut");
  };
  test("by SIGINT, which saves and exits 130", () => stopAndResume("SIGINT", 130));
  test("by SIGTERM, which saves and exits 143", { tags: "full" }, () => stopAndResume("SIGTERM", 143));
});

test("a second Ctrl-C exits at once, without saving", async () => {
  const slow = ["--set", "model.hidden=[4096, 4096]", "--set", "batch=640", "--set", "compression={kind: identity}"];
  const running = start(folder, "run", "job.yaml", "--output", "cut", ...slow);
  await until(running, () => running.stderr().includes("step  1/30"));
  running.child.kill("SIGINT");
  await until(running, () => running.stderr().includes("once more to exit at once"));
  running.child.kill("SIGINT");
  const { code, stderr } = await running.ended;
  expect(code).toBe(130);
  expect(stderr).not.toContain("saved");
  expect(checkpointNames(join(folder, "cut")).filter((name) => name.startsWith("step-"))).toEqual([]);
});

describe("resuming", () => {
  const { folder: doneFolder, remove: removeDone } = jobFolder();
  afterAll(removeDone);
  beforeAll(async () => {
    expect((await skeinTrain(doneFolder, "run", "job.yaml", "--quiet", "--output", "done")).code).toBe(0);
  });
  beforeEach(() => cpSync(join(doneFolder, "done"), join(folder, "done"), { recursive: true }));

  test("skips a torn checkpoint, and reports it", async () => {
    truncateSync(join(folder, "done/checkpoints/step-00000030/shared.safetensors"), 1000);
    const { code, stderr } = await skeinTrain(folder, "resume", "done");
    expect(stderr).toContain(
      "skipped a damaged checkpoint: done/checkpoints/step-00000030/shared.safetensors has 1000 bytes, but its manifest says",
    );
    expect(stderr).toContain("resuming from done/checkpoints/step-00000020, step 20 of 30");
    expect(code).toBe(0);
  });

  test("with only torn checkpoints it ends with the retriable exit code: their disk may recover", async () => {
    for (const name of checkpointNames(join(folder, "done")))
      truncateSync(join(folder, "done/checkpoints", name, "shared.safetensors"), 1000);
    const { code, stderr } = await skeinTrain(folder, "run", "job.yaml", "--output", "done", "--resume-if-possible");
    expect(stderr.trimEnd().split("\n")).toEqual([
      expect.stringMatching(
        /^no checkpoint to resume from: done\/checkpoints has 3, but none is valid \(.*\); check the disk/,
      ),
    ]);
    expect(code).toBe(75);
  });

  const savedSteps = (): unknown =>
    (JSON.parse(readFileSync(join(folder, "done/job.json"), "utf8")) as { readonly steps: unknown }).steps;

  test("a finished run evaluates again, and can continue longer, which the next resume knows; a trace without disk space costs no result", async () => {
    const [again, longer] = [
      await skeinTrain(folder, "resume", "done", "--json"),
      await skeinTrain(folder, "resume", "done", "--json", "--steps", "40", "--trace", "/dev/full"),
    ];
    expect(again.code).toBe(0);
    expect(savedSteps()).toBe(40);
    expectTold(
      longer,
      /\nthe trace was not written to \/dev\/full \(ENOSPC: .*\); all other results of the run are in its output folder; .*\n$/,
      1,
    );
    expect(JSON.parse(again.stdout)).toMatchObject({ checkpoint: "done/checkpoints/step-00000030" });
    expect(JSON.parse(longer.stdout)).toMatchObject({ checkpoint: "done/checkpoints/step-00000040" });
    expect(longer.stderr).toContain("this run will not equal an uninterrupted one"); // the cosine schedule is longer
  });

  test.each([
    [
      "another model",
      ["--set", "model.hidden=[24]"],
      [
        "done/checkpoints/step-00000030 is of a different model or optimizer",
        "params.layers.0.weight: f32[784, 16] in the checkpoint, f32[784, 24] in the job's model",
      ],
    ],
    [
      "another number of ranks",
      ["--ranks", "1"],
      [
        "was written by 2 ranks, each with its own state (residuals or inverses), but the job has 1; resume with 2 ranks",
      ],
    ],
    [
      "another compressor",
      ["--set", "compression={kind: identity}"],
      ["residuals.0.residual: f32[12730] in the checkpoint, not in the job's model"],
    ],
  ])("refuses a checkpoint of %s", async (_, args, texts) => {
    const ended = await skeinTrain(folder, "resume", "done", "--steps", "50", ...args);
    for (const text of texts) expectTold(ended, text, 2);
    expect(savedSteps()).toBe(30);
  });

  test("a new run does not overwrite it", async () => {
    const { code, stderr } = await skeinTrain(folder, "run", "job.yaml", "--output", "done");
    expect(stderr).toContain("--output done: the folder already holds a run; continue that run with ");
    expect(stderr).toContain(" resume done, or name another folder");
    expect(code).toBe(2);
  });
});

test("a non-finite loss stops before the update and names the tensor", async () => {
  const ended = await skeinTrain(
    folder,
    "run",
    "job.yaml",
    "--output",
    "bad",
    "--set",
    "learningRate={peak: 1.0e+30}",
    "--set",
    "checkpoint.everySteps=1",
  );
  // the same steps would fail again, so no launcher should retry
  expectTold(ended, /step \d+: the (loss|gradient of params?.*) is not finite \(loss .*\); the update was not made/, 2);
});

test("a rank that fails ends the run, is named, and leaves no files behind", async () => {
  const { code, stderr } = await skeinTrain(folder, "run", "job.yaml", ...tooLarge);
  expect(stderr).toMatch(/rank [01]: .*bytes were asked for, but .* shared memory of all ranks/);
  expect(code).toBe(1);
  expect(existsSync(join(folder, "runs"))).toBe(false); // not even the folders created for the files of the run
});

describe("a disk that fills up while saving", () => {
  const disk = (...options: string[]): void =>
    void execFileSync("mount", ["-t", "tmpfs", "-o", options.join(","), "tmpfs", join(folder, "small")], {
      stdio: "ignore",
    });
  let mounted = false;
  beforeEach(() => {
    mkdirSync(join(folder, "small"));
    try {
      disk("size=640k");
      mounted = true;
    } catch {
      mounted = false; // mounting requires permission
    }
  });
  afterEach(() => {
    if (mounted) execFileSync("umount", [join(folder, "small")]);
  });

  test("is reported in one line and the previous checkpoint is kept; with space again the run resumes", async (context) => {
    if (!mounted) return context.skip("mounting a small tmpfs is not permitted here");
    // A checkpoint takes about 250 KiB, so the disk has room for two checkpoints but not for three.
    const { code, stderr } = await skeinTrain(folder, "run", "job.yaml", "--output", "small/run");
    expect(stderr.trimEnd().split("\n").at(-1)).toMatch(
      /^the disk of small\/run is full, so the run was stopped \(ENOSPC\); the unfinished checkpoint was removed, the previous checkpoint is intact: small\/run\/checkpoints\/step-000000[12]0; free some space and continue with: \S.* resume small\/run$/,
    );
    expect(stderr).not.toMatch(/^\s+at /m);
    expect(code).toBe(75);
    expect(checkpointNames(join(folder, "small/run")).every((name) => name.startsWith("step-"))).toBe(true);
    writeFileSync(join(folder, "small/filler"), ""); // fills the remaining space
    expect(() => writeFileSync(join(folder, "small/filler"), new Uint8Array(2 ** 20))).toThrow("ENOSPC");
    for (const again of ["resume", "report"]) {
      const full = await skeinTrain(folder, again, "small/run");
      expect(full.stderr.trimEnd().split("\n").at(-1)).toMatch(/^the disk of small\/run\S* is full, .*; free some/);
      expect(full.code).toBe(75);
    }
    expect(readdirSync(join(folder, "small/run")).filter((name) => /tmp$|held/.test(name))).toEqual([]);
    rmSync(join(folder, "small/filler"));
    disk("remount", "size=8m");
    const resumed = await skeinTrain(folder, "resume", "small/run");
    expect(resumed.code).toBe(0);
    expect((await skeinTrain(folder, "run", "job.yaml", "--quiet", "--output", "whole")).code).toBe(0);
    expect(checkpointBytes(join(folder, "small/run"), 30)).toEqual(checkpointBytes(join(folder, "whole"), 30));
  });

  test("a disk that is full from the start", async (context) => {
    if (!mounted) return context.skip("mounting a small tmpfs is not permitted here");
    disk("remount", "size=40k");
    writeFileSync(join(folder, "small/filler"), new Uint8Array(30_000));
    const { code, stderr } = await skeinTrain(folder, "run", "job.yaml", "--output", "small/run");
    expect(stderr).toContain("the disk of small/run is full");
    expect(stderr).toContain(
      "nothing was saved before; free some space, or name a folder on another disk with --output",
    );
    expect(code).toBe(75);
  });
});

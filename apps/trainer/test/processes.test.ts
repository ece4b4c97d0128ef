import { linkSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseLinkFile } from "@skein/collectives/node";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  checkpointNames,
  childrenOf,
  disturbed,
  hasGoneOn,
  jobFolder,
  skeinTrain,
  start,
  tooLarge,
  until,
} from "./cli.ts";
import { signalAll } from "./attacks/run-processes.ts";
import { expectSameEnd, expectTold } from "./run-ends.ts";
import { expectSoundTrace } from "./trace-rules.ts";

const long = ["--steps", "120", "--set", "checkpoint.keep=100"];
const reached = (output: string, step: number) => (): boolean =>
  checkpointNames(output).includes(`step-${String(step).padStart(8, "0")}`);

let folder: string;
let remove: () => void;
beforeEach(() => ({ folder, remove } = jobFolder()));
afterEach(() => remove());

const { folder: reference, remove: removeReference } = jobFolder();
afterAll(removeReference);
beforeAll(async () => {
  for (const ranks of ["2", "4"])
    expect(
      (
        await skeinTrain(
          reference,
          "run",
          "job.yaml",
          ...long,
          "--ranks",
          ranks,
          "--output",
          `threads-${ranks}`,
          "--trace",
          `${ranks}.json`,
        )
      ).code,
    ).toBe(0);
});

const expectSame = (output: string, ranks: number): void =>
  expectSameEnd(join(folder, output), join(reference, `threads-${ranks}`), 120);

describe("the same bits as threads of one process", () => {
  const expectBitsOfThreads = async (_: string, ranks: number, args: readonly string[]): Promise<void> => {
    const { code, stderr, stdout } = await skeinTrain(
      folder,
      "run",
      "job.yaml",
      ...long,
      "--ranks",
      String(ranks),
      "--json",
      "--output",
      "run",
      "--trace",
      "trace.json",
      ...args,
    );
    expect([code, stderr.match(/^\s+at .*/m)]).toEqual([0, null]);
    expectSame("run", ranks);
    for (const trace of [join(folder, "trace.json"), join(reference, `${ranks}.json`)]) expectSoundTrace(trace, ranks);
    const summary = JSON.parse(stdout) as { bytesSentPerRank: number };
    expect(summary.bytesSentPerRank).toBeGreaterThan(0);
  };
  const inPairs = ["--set", "network.ranksPerProcess=2"];
  test.each([
    ["TLS, two processes of two threads each", 4, ["--transport", "tls", ...inPairs]],
    ["TCP with the codec", 2, ["--transport", "tcp", "--set", "network.codec=always"]],
  ])("%s", expectBitsOfThreads);
  test.each([
    ["TCP, two processes", 2, ["--transport", "tcp"]],
    ["TLS, two processes", 2, ["--transport", "tls"]],
    ["TCP, four processes", 4, ["--transport", "tcp"]],
    ["TCP, two processes of two threads each", 4, ["--transport", "tcp", ...inPairs]],
  ])("%s", { tags: "full" }, expectBitsOfThreads);
});

describe("a process that dies", () => {
  test("by kill -9 is named by all others, and the run resumes by itself to the same bits", async () => {
    const running = start(folder, "run", "job.yaml", ...long, "--transport", "tcp", "--output", "cut");
    await until(running, reached(join(folder, "cut"), 30));
    const killed = childrenOf(running.child.pid!).at(-1)!;
    process.kill(killed, "SIGKILL");
    const { code, stderr } = await disturbed(running, hasGoneOn);
    expect(stderr).toMatch(/rank 0: rank 1 was lost during [a-z-]+ #\d+/);
    expect(stderr).toMatch(
      /rank 1: its process was ended by SIGKILL; going on from cut\/checkpoints\/step-00000\d\d0 \(restart 1 of 3\)/,
    );
    expect(code).toBe(0);
    expectSame("cut", 2);
  });

  test("without restarts ends the run, which can be resumed", { tags: "full" }, async () => {
    const running = start(
      folder,
      "run",
      "job.yaml",
      ...long,
      "--transport",
      "tcp",
      "--output",
      "cut",
      "--max-restarts",
      "0",
    );
    await until(running, reached(join(folder, "cut"), 30));
    process.kill(childrenOf(running.child.pid!)[0]!, "SIGKILL");
    const { code, stderr } = await disturbed(running);
    expect(stderr.trimEnd().split("\n").at(-1)).toBe("rank 0: its process was ended by SIGKILL");
    expect(code).toBe(1);
    expect(checkpointNames(join(folder, "cut")).every((name) => name.startsWith("step-"))).toBe(true);
    expect((await skeinTrain(folder, "resume", "cut")).code).toBe(0);
    expectSame("cut", 2);
  });
});

const stopAndResume = async (signal: "SIGINT" | "SIGTERM"): Promise<void> => {
  const running = start(
    folder,
    "run",
    "job.yaml",
    ...long,
    "--transport",
    "tcp",
    "--ranks",
    "4",
    "--set",
    "network.ranksPerProcess=2",
    "--output",
    "cut",
  );
  await until(running, reached(join(folder, "cut"), 30));
  const { pid } = running.child;
  signalAll([...childrenOf(pid!), pid!], signal); // like a service manager, which signals all processes without waiting
  const { code, stderr } = await disturbed(running);
  expect(stderr).toMatch(
    /stopped after step \d+ of 120; saved cut\/checkpoints\/step-\d{8}; continue with: \S.* resume cut\n$/,
  );
  expect(code).toBe(signal === "SIGINT" ? 130 : 143);
  expect((await skeinTrain(folder, "resume", "cut")).code).toBe(0);
  expectSame("cut", 4);
};
test("SIGTERM to all processes saves after the current step, and resume ends with the same bits", () =>
  stopAndResume("SIGTERM"));
test("SIGINT to all processes saves after the current step, and resume ends with the same bits", { tags: "full" }, () =>
  stopAndResume("SIGINT"),
);

test("links are measured, and their file is replaced atomically: readers with the old one open can finish", async () => {
  const [path, before] = [join(folder, "links.json"), join(folder, "before.json")];
  writeFileSync(path, "an earlier one");
  linkSync(path, before);
  const { code, stderr } = await skeinTrain(folder, "links", "job.yaml", "--transport", "tcp");
  expect([code, stderr.match(/^\s+at .*/m)]).toEqual([0, null]);
  expect(readFileSync(before, "utf8")).toBe("an earlier one");
  expect(parseLinkFile(readFileSync(path, "utf8"), path).pairs).not.toEqual([]);
});

test("when the launcher is killed, its processes end too", async () => {
  const running = start(folder, "run", "job.yaml", "--steps", "100000", "--transport", "tcp", "--output", "cut");
  await until(running, reached(join(folder, "cut"), 30));
  const children = childrenOf(running.child.pid!);
  expect(children.length).toBe(2);
  running.child.kill("SIGKILL");
  await running.ended;
  const living = (): number[] =>
    children.filter((pid) => {
      try {
        return process.kill(pid, 0);
      } catch {
        return false;
      }
    });
  for (let tries = 0; tries < 200 && living().length > 0; tries++)
    await new Promise((resolve) => setTimeout(resolve, 100));
  expect(living()).toEqual([]);
});

test.each([
  [
    "a rank that fails for its own reason",
    tooLarge,
    /rank [01]: .*bytes were asked for, but .* shared memory of all ranks/,
    1,
  ],
  [
    "ranks that do not divide",
    ["--set", "network.ranksPerProcess=3"],
    /2 ranks are not divisible by 3 ranks per process; use a divisor of 2/,
    2,
  ],
  [
    "links where there are none",
    ["--transport", "threads", "--set", "network.emulate={bytesPerSecond: 1}"],
    /transport: threads has no links to emulate/,
    2,
  ],
  [
    "a listener for everyone",
    ["--set", "network.listen=0.0.0.0"],
    /^rank [01]: rank [01] would listen on 0\.0\.0\.0 without TLS.*set insecure/m,
    2,
  ],
] as const)("%s is reported in one line", async (_, args, line, expected) => {
  const ended = await skeinTrain(folder, "run", "job.yaml", "--transport", "tcp", ...args);
  expectTold(ended, line, expected);
});

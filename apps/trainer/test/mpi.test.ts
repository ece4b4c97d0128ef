import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, type TestContext } from "vitest";
import {
  checkpointNames,
  childrenOf,
  disturbed,
  hasGoneOn,
  jobFolder,
  metricLines,
  skeinTrain,
  startWith,
  until,
} from "./cli.ts";
import { expectSameEnd, expectTold } from "./run-ends.ts";
import { expectSoundTrace } from "./trace-rules.ts";

const missing = ["mpirun", "mpicxx"].filter((program) => spawnSync(program, ["--version"]).error !== undefined);
const reason = `${missing.join(" and ")} not found; install openmpi-bin and libopenmpi-dev`;

const addonFolder = mkdtempSync(join(tmpdir(), "skein-mpi-"));
const addon = { SKEIN_MPI_ADDON: join(addonFolder, "skein-mpi.node") };
const { folder: reference, remove: removeReference } = jobFolder();
afterAll(() => {
  removeReference();
  rmSync(addonFolder, { recursive: true });
});
const long = ["--steps", "120", "--set", "checkpoint.keep=100"];
beforeAll(async () => {
  if (missing.length > 0) return;
  const built = await skeinTrain(reference, "mpi", "build", "--output", addon.SKEIN_MPI_ADDON);
  expect(built.stderr).toBe("");
  for (const ranks of ["2", "4"])
    expect(
      (await skeinTrain(reference, "run", "job.yaml", ...long, "--ranks", ranks, "--output", `threads-${ranks}`)).code,
    ).toBe(0);
});

let folder: string;
let remove: () => void;
beforeEach(() => ({ folder, remove } = jobFolder()));
afterEach(() => remove());

const expectSame = (output: string, ranks: number): void =>
  expectSameEnd(join(folder, output), join(reference, `threads-${ranks}`), 120);

const expectBitsOfThreads = async (ranks: number, context: TestContext): Promise<void> => {
  if (missing.length > 0) return context.skip(reason);
  const args = [
    "run",
    "job.yaml",
    ...long,
    "--ranks",
    String(ranks),
    "--transport",
    "mpi",
    "--output",
    "run",
    "--trace",
    "trace.json",
  ];
  const { code, stderr } = await startWith({ env: addon }, folder, ...args).ended;
  expect([code, stderr.match(/^\s+at .*/m)]).toEqual([0, null]);
  expectSame("run", ranks);
  expectSoundTrace(join(folder, "trace.json"), ranks);
};
test("4 ranks under mpirun end with the bits of threads", { tags: "full" }, (context) =>
  expectBitsOfThreads(4, context),
);
test("2 ranks under mpirun end with the bits of threads", (context) => expectBitsOfThreads(2, context));

test("ranks that shard experts, and move them, end with the bits of threads, under mpirun too", {
  tags: "full",
}, async (context) => {
  if (missing.length > 0) return context.skip(reason);
  const settings = [
    "ranks=4",
    "mesh={data: 2, expert: 2}",
    "model={kind: gpt, layers: 2, heads: 2, width: 16, experts: {count: 4, every: 1, dispatch: ragged, placement: {everySteps: 2}}}",
    "data={kind: moby-dick, window: 16, trainSamples: 400, testSamples: 30}",
    "batch=8",
    "evaluation.batch=8",
    "compression={kind: identity}",
    "clipNorm=0.5",
  ].flatMap((setting) => ["--set", setting]);
  const args = ["run", "job.yaml", ...settings, "--steps", "8"];
  for (const transport of ["threads", "mpi"]) {
    const { ended } = startWith({ env: addon }, folder, ...args, "--transport", transport, "--output", transport);
    expect((await ended).code).toBe(0);
  }
  expectSameEnd(join(folder, "mpi"), join(folder, "threads"), 8);
  expect(metricLines(join(folder, "mpi")).filter(({ type }) => (type as string) === "placement")).not.toEqual([]);
});

test("ranks started by mpirun find each other", async (context) => {
  if (missing.length > 0) return context.skip(reason);
  const args = ["run", "job.yaml", ...long, "--transport", "mpi", "--output", "run"];
  const { code, stdout } = await startWith(
    { env: addon, launcher: ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"] },
    folder,
    ...args,
  ).ended;
  expect(code).toBe(0);
  expect(stdout.match(/^test accuracy/gm)?.length, "one process tells the result").toBe(1);
  expectSame("run", 2);
});

// Restarts of mpirun are tested with a fake mpirun that fails on request (`launch-command.test.ts`).
test("a rank that is killed ends the others too, and the run resumes to the same bits", {
  tags: "full",
}, async (context) => {
  if (missing.length > 0) return context.skip(reason);
  const running = startWith(
    { env: addon },
    folder,
    "run",
    "job.yaml",
    ...long,
    "--transport",
    "mpi",
    "--output",
    "cut",
  );
  await until(running, () => checkpointNames(join(folder, "cut")).includes("step-00000030"));
  const [mpirun] = childrenOf(running.child.pid!);
  process.kill(childrenOf(mpirun!).at(-1)!, "SIGKILL");
  const { code, stderr } = await disturbed(running, hasGoneOn);
  expect(stderr).toMatch(/rank [01].*going on from cut\/checkpoints\/step-00000\d\d0 \(restart 1 of 3\)/);
  expect(code).toBe(0);
  expectSame("cut", 2);
});

test("without the addon the run says how to build it", async (context) => {
  if (missing.length > 0) return context.skip(reason);
  const ended = await startWith(
    { env: { SKEIN_MPI_ADDON: join(folder, "none.node") } },
    folder,
    "run",
    "job.yaml",
    "--transport",
    "mpi",
  ).ended;
  expectTold(ended, /none\.node.* mpi build/s, 2);
});

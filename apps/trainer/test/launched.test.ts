import { once } from "node:events";
import { cpSync, existsSync, readdirSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  checkpointNames,
  disturbed,
  type Ended,
  freePort,
  jobFolder,
  type Running,
  skeinTrain,
  startRank,
  startWith,
  stepLosses,
  until,
} from "./cli.ts";
import { expectDone, expectSameEnd, expectTold } from "./run-ends.ts";

// A launcher starts several processes with the same command. Each finds its rank in its environment.

const { folder: reference, remove: removeReference } = jobFolder();
afterAll(removeReference);
const long = ["--steps", "120", "--set", "checkpoint.keep=100"];
beforeAll(async () =>
  expect((await skeinTrain(reference, "run", "job.yaml", ...long, "--output", "threads")).code).toBe(0),
);

let folder: string;
let remove: () => void;
beforeEach(() => ({ folder, remove } = jobFolder()));
afterEach(() => remove());

const launch = async (
  args: readonly string[] = [],
  secrets: readonly (string | undefined)[] = [undefined, undefined],
): Promise<Running[]> => {
  const port = await freePort();
  return secrets.map((secret, rank) =>
    startRank({ folder, port, rank, args: [...long, "--transport", "tcp", "--output", "run", ...args], secret }),
  );
};

const reached = (): boolean => checkpointNames(join(folder, "run")).includes("step-00000030");
const expectSame = (): void => expectSameEnd(join(folder, "run"), join(reference, "threads"), 120);

test("two processes train together, and only that of rank 0 prints", async () => {
  const ranks = await launch();
  const ended = await Promise.all(ranks.map((rank) => rank.ended));
  expect(ended.map(({ code }) => code)).toEqual([0, 0]);
  // if the other rank starts slowly
  const words = ended[1]!.stderr.replaceAll(/^rank 1: (waiting for|joined at|still connecting to) .*\n/gm, "");
  expect([ended[1]!.stdout, words]).toEqual(["", ""]);
  expect(ended[0]!.stdout).toContain("test accuracy");
  expectSame();
});

const endOf = async (killed: number): Promise<void> => {
  const ranks = await launch();
  await until(ranks[0]!, reached);
  ranks[killed]!.child.kill("SIGKILL");
  const survivor = await disturbed(ranks[1 - killed]!);
  expect(survivor.code).toBe(1);
  expect(survivor.stderr).toContain(killed === 1 ? "rank 1" : "the controller of the run has ended");
  expect(survivor.stderr).not.toMatch(/^\s+at /m);
  const again = await Promise.all((await launch()).map((rank) => rank.ended));
  expectDone(again);
  expect(again[0]!.stderr).toContain("resuming from run/checkpoints/step-");
  expectSame();
};
test("after kill -9 of rank 0 the other reports it and ends; the same command again resumes to the same bits", () =>
  endOf(0));
test("so it does after kill -9 of rank 1", { tags: "full" }, () => endOf(1));

const stopByOne = async (signalled: number): Promise<void> => {
  const ranks = await launch();
  await until(ranks[0]!, reached);
  ranks[signalled]!.child.kill("SIGTERM");
  const ended = await Promise.all(ranks.map((rank) => disturbed(rank)));
  expect(ended.map(({ code }) => code)).toEqual([143, 143]);
  expect(ended[0]!.stderr).toMatch(/stopped after step \d+ of 120; saved run\/checkpoints\//);
  const again = await Promise.all((await launch()).map((rank) => rank.ended));
  expectDone(again);
  expectSame();
};
test.each([0, 1])("SIGTERM to rank %i alone saves on all, and all exit with 143", { tags: "full" }, stopByOne);

/** Returns two reproducible pseudo-random numbers in [0, 1]. */
const moments = (seed: number): number[] => Array.from({ length: 2 }, (_, i) => (Math.sin(seed * 97 + i * 31) + 1) / 2);

// Stops all ranks, as mpirun, Slurm and the deletion of pods do.
const stopByAll = async (seed: number): Promise<void> => {
  const ranks = await launch();
  await until(ranks[0]!, reached);
  await Promise.all(
    moments(seed).map(async (moment, rank) => {
      await new Promise((resolve) => setTimeout(resolve, 60 * moment));
      ranks[rank]!.child.kill("SIGTERM");
    }),
  );
  const ended = await Promise.all(ranks.map((rank) => disturbed(rank)));
  expect(ended.map(({ code }) => code)).toEqual([143, 143]);
  const step = /stopped after step (\d+) of 120; saved run\/checkpoints\//.exec(ended[0]!.stderr)![1]!;
  expect(checkpointNames(join(folder, "run")).at(-1)).toBe(`step-${step.padStart(8, "0")}`);
  const again = await Promise.all((await launch()).map((rank) => rank.ended));
  expectDone(again);
  expectSame();
};
test.each([1, 2, 3])(
  "SIGTERM to all ranks, at times %i, saves once, and all exit with 143",
  { tags: "full" },
  stopByAll,
);

describe("a process whose run is not complete", () => {
  /** Expects that a process reported the stop, and left no files behind. */
  const expectLeft = async (running: Running, signal: "SIGINT" | "SIGTERM", line: RegExp): Promise<void> => {
    running.child.kill(signal);
    const { code, stderr } = await running.ended;
    expect(code).toBe(signal === "SIGINT" ? 130 : 143);
    expect(stderr.split("\n").at(-2)).toMatch(line);
    expect(stderr).not.toMatch(/stopping after this step|^\s+at /m);
    expect(existsSync(join(folder, "run"))).toBe(false);
  };
  const args = ["--transport", "tcp", "--output", "run"];

  test("reports whom it waits for and where, and ends at once on a signal: rank 0", async () => {
    const port = await freePort();
    const host = startRank({ folder, port, rank: 0, args });
    await until(host, () =>
      host.stderr().includes(`waiting for rank 1 of 2 to join at 127.0.0.1:${port}; giving up in `),
    );
    await expectLeft(host, "SIGINT", /^stopped before all ranks had joined; nothing was trained$/);
  });

  test("reports whom it waits for and where, and ends at once on a signal: rank 1", { tags: "full" }, async () => {
    const port = await freePort();
    const other = startRank({ folder, port, rank: 1, args });
    await until(other, () =>
      other.stderr().includes(`rank 1: waiting for rank 0 at 127.0.0.1:${port} (connection refused`),
    );
    await expectLeft(other, "SIGTERM", /^rank 1 was asked to end before all ranks had joined$/);
  });
});

test("a port that an earlier start still holds is reported as retriable", async () => {
  const holder = createServer().listen(0, "127.0.0.1");
  await once(holder, "listening");
  const { port } = holder.address() as AddressInfo;
  const ended = await startRank({ folder, port, rank: 0, args: ["--transport", "tcp", "--output", "run"] }).ended;
  holder.close();
  expectTold(
    ended,
    `port ${port} of this machine is in use, so the coordinator cannot listen there; end processes left by an earlier start`,
    75,
  );
});

test("an output folder that the machines do not share is refused before the first step", async () => {
  const elsewhere = jobFolder();
  const port = await freePort();
  const args = [...long, "--transport", "tcp", "--output", "run"];
  const ranks = [folder, elsewhere.folder].map((own, rank) => startRank({ folder: own, port, rank, args }));
  const [host, other] = await Promise.all(ranks.map((rank) => rank.ended));
  const left = [folder, elsewhere.folder].map((own) =>
    existsSync(join(own, "run")) ? readdirSync(join(own, "run")) : [],
  );
  elsewhere.remove();
  expect(host!.stderr).toMatch(
    /^rank 1: --output run: the process of rank 1 on .* does not see the folder that the controller of the run has created;/m,
  );
  expect([host!.code, other!.code]).toEqual([2, 1]);
  expect(left.flat().filter((name) => name.startsWith(".mark-") || name === "checkpoints")).toEqual([]);
  expect(existsSync(join(folder, "run", "metrics.jsonl")) ? stepLosses(join(folder, "run")) : []).toEqual([]);
});

test("ranks that write no part of a checkpoint need no shared folder; a run resumes from a copy of it", {
  tags: "full",
}, async () => {
  const elsewhere = jobFolder();
  const folders = [folder, elsewhere.folder];
  const run = async (steps: string): Promise<Ended[]> => {
    const port = await freePort();
    const args = ["--transport", "tcp", "--output", "run", "--set", "compression={kind: identity}", "--steps", steps];
    return Promise.all(folders.map((own, rank) => startRank({ folder: own, port, rank, args }).ended));
  };
  const first = await run("10");
  const [host] = await run("20");
  const checkpoints = "run/checkpoints";
  cpSync(join(folder, checkpoints), join(elsewhere.folder, checkpoints), { recursive: true });
  const last = await run("20");
  elsewhere.remove();
  expect([...first, ...last].map(({ code, stderr }) => [code, /^\s+at /m.test(stderr)])).toEqual(
    Array.from({ length: 4 }, () => [0, false]),
  );
  expectTold(host!, "does not see the checkpoint run/checkpoints/step-00000010 from which the run resumes; copy", 2);
  expect(stepLosses(join(folder, "run"))).toHaveLength(20);
});

test("a process with another secret is refused, and reports it", async () => {
  const [host, stranger] = await launch([], [undefined, "t".repeat(43)]);
  const { code, stderr } = await stranger!.ended;
  expect(code).toBe(2);
  expect(stderr).toMatch(/does not know this job's secret; give every process the same SKEIN_SECRET/);
  expect(stderr).not.toMatch(/^\s+at /m);
  host!.child.kill("SIGKILL");
  await host!.ended;
});

test.each([
  [
    { RANK: "0", WORLD_SIZE: "3" },
    ["--transport", "tcp"],
    /started 3 processes of 1 rank, but the job has 2 ranks; add --ranks 3/,
  ],
  [
    { RANK: "1", WORLD_SIZE: "2" },
    [],
    /started 2 processes, but transport: threads runs all ranks in one process; add --transport/,
  ],
  [
    { RANK: "1", WORLD_SIZE: "2" },
    ["--transport", "tcp"],
    /need the address of the coordinator; set SKEIN_COORDINATOR/,
  ],
  [
    { RANK: "1", WORLD_SIZE: "2" },
    ["--transport", "tls"],
    /transport: tls needs certificates for all of them; create them with \S.* certs init/,
  ],
] as const)("a launcher's environment must match the job: %j", async (env, args, line) => {
  const { code, stderr } = await startWith({ env }, folder, "run", "job.yaml", ...args).ended;
  expect(stderr).toMatch(line);
  expect(code).toBe(2);
});

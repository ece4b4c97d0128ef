import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { checkpointBytes, checkpointNames, jobFolder, type Running, skeinTrain, startWith, stepLosses, until } from "./cli.ts";

// Processes that a launcher has started, all by one command: each finds out by its environment which rank it is.

const { folder: reference, remove: removeReference } = jobFolder();
afterAll(removeReference);
const long = ["--steps", "120", "--set", "checkpoint.keep=100"];
beforeAll(async () => expect((await skeinTrain(reference, "run", "job.yaml", ...long, "--output", "threads")).code).toBe(0));

let folder: string;
let remove: () => void;
beforeEach(() => ({ folder, remove } = jobFolder()));
afterEach(() => remove());

const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });

/** Start two ranks by hand, as two machines would. */
const launch = async (
  output: string,
  args: readonly string[],
  secrets: readonly string[] = ["s".repeat(43), "s".repeat(43)],
): Promise<Running[]> => {
  const port = await freePort();
  return secrets.map((secret, rank) =>
    startWith(
      { env: { RANK: String(rank), WORLD_SIZE: "2", SKEIN_COORDINATOR: `127.0.0.1:${port}`, SKEIN_SECRET: secret } },
      folder,
      "run",
      "job.yaml",
      ...long,
      "--transport",
      "tcp",
      "--output",
      output,
      "--resume-if-possible",
      ...args,
    ),
  );
};
const reached = (): boolean => checkpointNames(join(folder, "run")).includes("step-00000030");
const expectSame = (): void => {
  expect(checkpointBytes(join(folder, "run"), 120)).toEqual(checkpointBytes(join(reference, "threads"), 120));
  expect(stepLosses(join(folder, "run"))).toEqual(stepLosses(join(reference, "threads")));
};

test("two processes train together, and only that of rank 0 speaks", async () => {
  const ranks = await launch("run", []);
  const ended = await Promise.all(ranks.map((rank) => rank.ended));
  expect(ended.map(({ code }) => code)).toEqual([0, 0]);
  expect([ended[1]!.stdout, ended[1]!.stderr]).toEqual(["", ""]);
  expect(ended[0]!.stdout).toContain("test accuracy");
  expectSame();
});

test.each([0, 1])(
  "after kill -9 of rank %i the other says so and ends; the same command again goes on to the same bits",
  async (killed) => {
    const ranks = await launch("run", []);
    await until(ranks[0]!, reached);
    ranks[killed]!.child.kill("SIGKILL");
    const survivor = await ranks[1 - killed]!.ended;
    expect(survivor.code).toBe(1);
    expect(survivor.stderr).toContain(killed === 1 ? "rank 1" : "the host of the run is gone");
    expect(survivor.stderr).not.toMatch(/^\s+at /m);
    const again = await Promise.all((await launch("run", [])).map((rank) => rank.ended));
    expect(again.map(({ code }) => code)).toEqual([0, 0]);
    expect(again[0]!.stderr).toContain("going on from run/checkpoints/step-");
    expectSame();
  },
);

test.each([0, 1])("SIGTERM to rank %i alone saves on all, and all exit with 143", async (told) => {
  const ranks = await launch("run", []);
  await until(ranks[0]!, reached);
  ranks[told]!.child.kill("SIGTERM");
  const ended = await Promise.all(ranks.map((rank) => rank.ended));
  expect(ended.map(({ code }) => code)).toEqual([143, 143]);
  expect(ended[0]!.stderr).toMatch(/stopped after step \d+ of 120; saved run\/checkpoints\//);
  const again = await Promise.all((await launch("run", [])).map((rank) => rank.ended));
  expect(again.map(({ code }) => code)).toEqual([0, 0]);
  expectSame();
});

test("a process with another secret is turned away, and says so", async () => {
  const [host, stranger] = await launch("run", [], ["s".repeat(43), "t".repeat(43)]);
  const { code, stderr } = await stranger!.ended;
  expect(code).toBe(2);
  expect(stderr).toMatch(/token/);
  expect(stderr).not.toMatch(/^\s+at /m);
  host!.child.kill("SIGKILL");
  await host!.ended;
});

test.each([
  [{ RANK: "0", WORLD_SIZE: "3" }, ["--transport", "tcp"], /has started 3 processes of 1 rank, but the job has 2 ranks; add --ranks 3/],
  [{ RANK: "1", WORLD_SIZE: "2" }, [], /has started 2 processes, but transport: threads keeps all ranks in one; add --transport/],
  [{ RANK: "1", WORLD_SIZE: "2" }, ["--transport", "tcp"], /need to know where they meet; set SKEIN_COORDINATOR/],
  [
    { RANK: "1", WORLD_SIZE: "2" },
    ["--transport", "tls"],
    /transport: tls needs the certificates of all; make them with skein-train certs init/,
  ],
] as const)("what the launcher says must fit the job: %j", async (env, args, line) => {
  const { code, stderr } = await startWith({ env }, folder, "run", "job.yaml", ...args).ended;
  expect(stderr).toMatch(line);
  expect(code).toBe(2);
});

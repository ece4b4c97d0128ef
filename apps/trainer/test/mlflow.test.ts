import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { checkpointBytes, jobFolder, metricLines, startWith } from "./cli.ts";
import { type KeptRun, openTestMlflow, type TestMlflow } from "./mlflow-server.ts";
import { settings } from "./small-gpt.ts";

let folder: string;
let remove: () => void;
let server: TestMlflow;
beforeAll(async () => {
  ({ folder, remove } = jobFolder());
  server = await openTestMlflow({ authorization: "Bearer secret-token" });
});
afterEach(() => (server.down = undefined));
afterAll(async () => {
  await server.close();
  remove();
});

const job = settings([
  "data={kind: mnist, trainSamples: 120, testSamples: 20}",
  "model={kind: mlp, hidden: [8]}",
  "batch=40",
  "evaluation={batch: 20, everySteps: 3}",
  "compression={kind: identity}",
]);
const skein = (env: Readonly<Record<string, string>>, ...args: string[]) =>
  startWith(
    { env: { MLFLOW_TRACKING_URI: server.address, MLFLOW_TRACKING_TOKEN: "secret-token", ...env } },
    folder,
    ...args,
  ).ended;
const run = (output: string, steps: number, env: Readonly<Record<string, string>> = {}, ...args: string[]) =>
  skein(env, "run", "job.yaml", "--output", output, "--steps", `${steps}`, ...job, "--log", "mlflow", ...args);

/** Returns the values of a metric, with their steps. */
const valuesOf = ({ metrics }: KeptRun, name: string): unknown[][] =>
  metrics.filter(({ key }) => key === name).map(({ step, value }) => [step, value]);

const filesOf = (output: string): string[] =>
  readdirSync(join(folder, output), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

test("a run is there during training and after, with its job; a resumed run continues there, too", async () => {
  const first = await run("live", 6);
  expect(first.code, first.stderr).toBe(0);
  expect(first.stderr).not.toContain("mlflow:");
  const [kept, ...others] = [...server.runs.values()];
  expect(others).toEqual([]);
  expect(kept).toMatchObject({ name: "tiny", status: "FINISHED", experiment: server.experiments.get("tiny")!.id });
  expect(kept!.params).toMatchObject({
    "model.kind": "mlp",
    "model.hidden": "[8]",
    batch: "40",
    "optimizer.kind": expect.any(String),
  });
  expect(kept!.tags["mlflow.source.name"]).toBe("skein-train");
  const losses = (type: string): unknown[] =>
    metricLines(join(folder, "live")).flatMap((line) => (line.type === type ? [[line.step, line["loss"]]] : []));
  expect(valuesOf(kept!, "train/loss")).toEqual(losses("step"));
  expect(valuesOf(kept!, "test/loss")).toEqual(losses("evaluation"));
  expect(filesOf("live").filter((path) => readFileSync(path).includes("secret-token"))).toEqual([]);

  const second = await skein({}, "resume", join(folder, "live"), "--steps", "8", "--log", "mlflow");
  expect(second.code, second.stderr).toBe(0);
  expect(server.runs.size).toBe(1);
  expect(valuesOf(kept!, "train/loss").map(([step]) => step)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  expect(kept!.status).toBe("FINISHED");
});

test("a server that is unavailable, or refuses, does not affect a run, and gets the missed points later", {
  tags: "full",
}, async () => {
  server.down = 503;
  const { code, stderr } = await run("away", 6);
  expect(code, stderr).toBe(0);
  expect(stderr).toMatch(/mlflow: .* answers 503 \(come back later\); the run continues/);
  const told = /mlflow: (\d+) of (\d+) points were lost .*: .*log .*away --to mlflow/.exec(stderr);
  expect(told?.[1]).toBe(told?.[2]);
  expect(checkpointBytes(join(folder, "away"), 6)).toEqual(checkpointBytes(join(folder, "live"), 6));

  server.down = undefined;
  const before = server.runs.size;
  const sent = await skein({}, "--json", "log", join(folder, "away"), "--to", "mlflow");
  expect(sent.code, sent.stderr).toBe(0);
  const answer = JSON.parse(sent.stdout) as { readonly run: string; readonly points: number };
  expect(server.runs.size).toBe(before + 1);
  const kept = server.runs.get(answer.run)!;
  expect([kept.status, kept.metrics.length]).toEqual(["FINISHED", answer.points]);
  expect(answer.points).toBe(Number(told![2]));
  const times = kept.metrics.map(({ timestamp }) => timestamp);
  expect(times).toEqual(times.toSorted((a, b) => a - b));

  for (const [env, says] of [
    [{ MLFLOW_TRACKING_TOKEN: "wrong" }, /answers 401 \(who are you\); check that the server is running/],
    [{ MLFLOW_TRACKING_URI: "http://127.0.0.1:9" }, /127\.0\.0\.1:9 does not answer \(/],
  ] as const) {
    const refused = await skein(env, "log", join(folder, "away"), "--to", "mlflow");
    expect(refused.code).toBe(1);
    expect(refused.stderr).toMatch(says);
    expect(refused.stderr).not.toContain("wrong");
  }
});

test("a run that was killed resumes as the same run there, with each step once", { tags: "full" }, async () => {
  const many = [
    "--output",
    "killed",
    "--steps",
    "100000",
    ...job,
    "--set",
    "checkpoint.everySteps=50",
    "--log",
    "mlflow",
  ];
  const before = server.runs.size;
  const env = { MLFLOW_TRACKING_URI: server.address, MLFLOW_TRACKING_TOKEN: "secret-token" };
  const { child, ended, stderr } = startWith({ env }, folder, "run", "job.yaml", ...many);
  const kept = (): KeptRun => [...server.runs.values()].at(-1)!;
  const lastStep = (): number => (server.runs.size > before ? Number(valuesOf(kept(), "train/loss").at(-1)?.[0]) : 0);
  while (!(lastStep() > 60)) {
    expect(child.exitCode, stderr()).toBeNull();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  child.kill("SIGKILL");
  expect((await ended).signal).toBe("SIGKILL");
  expect(kept().status).toBe("RUNNING");
  const upTo = lastStep() + 2000; // more steps than the server has received
  const resumed = await skein({}, "resume", join(folder, "killed"), "--steps", `${upTo}`, "--log", "mlflow");
  expect(resumed.code, resumed.stderr).toBe(0);
  expect([server.runs.size, kept().status]).toEqual([before + 1, "FINISHED"]);
  expect(valuesOf(kept(), "train/loss").map(([step]) => step)).toEqual(Array.from({ length: upTo }, (_, i) => i + 1));
});

test("an impossible setting is reported before the run", { tags: "full" }, async () => {
  for (const [args, env, says] of [
    [["--log", "wandb"], {}, /wandb sync/],
    [["--log", "mlflow"], { MLFLOW_TRACKING_URI: "" }, /MLFLOW_TRACKING_URI is not set/],
  ] as const) {
    const { code, stderr } = await skein(env, "run", "job.yaml", "--output", "none", ...job, ...args);
    expect([code, existsSync(join(folder, "none"))]).toEqual([2, false]);
    expect(stderr).toMatch(says);
    expect(stderr.trim().split("\n")).toHaveLength(1);
  }
});

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { issueCertificate, makeAuthority } from "@skein/launch/issue-certificate";
import { type Measurement, MetricFiles } from "@skein/run-files/node";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { MlflowLog } from "../src/log/mlflow-log.ts";
import { mlflowServerOf } from "../src/log/mlflow-server.ts";
import { type KeptRun, openTestMlflow, type TestMlflow, type TestMlflowOptions } from "./mlflow-server.ts";

let output: string;
let server: TestMlflow;
const open = async (options?: TestMlflowOptions): Promise<void> => {
  await server.close();
  server = await openTestMlflow(options);
};
beforeEach(async () => {
  output = mkdtempSync(join(tmpdir(), "skein-mlflow-"));
  server = await openTestMlflow();
});
afterEach(async () => {
  await server.close();
  rmSync(output, { recursive: true });
});

const step = (at: number, loss = 1 / at): Measurement => ({ type: "step", step: at, loss });
const logOf = (
  job: { readonly name: string } = { name: "tiny" },
  env: Readonly<Record<string, string>> = {},
  firstStep = 0,
) => {
  const notes: string[] = [];
  const log = new MlflowLog({
    server: mlflowServerOf({ MLFLOW_TRACKING_URI: server.address, ...env }),
    output,
    firstStep,
    job,
    note: (line) => notes.push(line),
    every: 1,
  });
  return { log, notes };
};
const only = (): KeptRun => {
  expect(server.runs.size).toBe(1);
  return [...server.runs.values()][0]!;
};
const losses = ({ metrics }: KeptRun): unknown[][] =>
  metrics.flatMap(({ key, step: at, value }) => (key === "train/loss" ? [[at, value]] : []));
const until = async (isSo: () => boolean): Promise<void> => {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 1));
};

describe("what an MLflow server accepts", () => {
  test("more points than fit in a request, more options, longer ones, other names, and non-finite values", async () => {
    const layers = Object.fromEntries(Array.from({ length: 250 }, (_, i) => [`layer:${i}`, i]));
    const job = {
      name: "n".repeat(300),
      layers,
      "a:b": 1,
      a_b: 2,
      "../up": true,
      long: "😀".repeat(4000),
      cut: `${"x".repeat(499)}😀`,
      empty: "",
      nothing: "a\0b",
    };
    const { log, notes } = logOf(job, {});
    for (let at = 1; at <= 2500; at++) log.record(step(at));
    log.record({ type: "step", step: 2501, loss: Number.NaN });
    log.record({ type: "step", step: 2502, loss: Number.POSITIVE_INFINITY });
    log.record({ type: "step", step: 2503, loss: Number.NEGATIVE_INFINITY });
    log.record({ type: "evaluation", step: 2503, loss: 1, "f1 (größe)": 0.5, "..//x/": 2 });
    await log.end("finished");
    expect(notes).toEqual([]);
    const run = only();
    expect(losses(run).slice(0, 2500)).toEqual(Array.from({ length: 2500 }, (_, i) => [i + 1, 1 / (i + 1)]));
    expect(losses(run).slice(2500)).toEqual([
      [2501, Number.NaN],
      [2502, Number.POSITIVE_INFINITY],
      [2503, Number.NEGATIVE_INFINITY],
    ]);
    expect(run.metrics.filter(({ key }) => key.startsWith("test/")).map(({ key }) => key)).toEqual([
      "test/loss",
      "test/f1 _größe_",
      "test/__/x",
    ]);
    expect(Object.keys(run.params)).toHaveLength(258);
    expect(run.params).toMatchObject({ "layers.layer_249": "249", a_b: "1", a_b_2: "2", "__/up": "true", empty: '""' });
    expect([run.params["long"], run.params["cut"], run.params["nothing"]]).toEqual([
      "😀".repeat(250),
      "x".repeat(499),
      "a b",
    ]);
    expect(run.name).toBe("n".repeat(250));
    expect([run.status, typeof run.endTime]).toEqual(["FINISHED", "number"]);
  });

  test("refused options are reported, and metrics arrive all the same", async () => {
    server.refuses = (path) =>
      path === "runs/log-batch" && only().metrics.length === 0 && server.requests.length === 4 ? 400 : undefined;
    const { log, notes } = logOf();
    log.record(step(1));
    await log.end("stopped");
    expect(notes).toEqual([
      expect.stringMatching(/^mlflow: the server does not have the options of the job, because .* answers 400 /),
    ]);
    expect([losses(only()), only().status]).toEqual([[[1, 1]], "KILLED"]);
  });

  test("a deleted experiment is reported with what to do", async () => {
    server.experiments.set("tiny", { id: "7", isDeleted: true });
    const { log, notes } = logOf();
    log.record(step(1));
    await log.end("finished");
    expect(notes[0]).toMatch(/has deleted the experiment tiny; restore it there, or set MLFLOW_EXPERIMENT_NAME to /);
    expect(notes[1]).toMatch(/^mlflow: 1 of 1 points were lost \(.*: skein-train log .* --to mlflow$/);
  });
});

describe("a resumed run", () => {
  test("is the same run there, with each step once, however it ended before", async () => {
    const first = logOf({ name: "tiny", batch: 40 } as { name: string });
    for (let at = 1; at <= 7; at++) first.log.record(step(at));
    await until(() => server.runs.size === 1 && losses(only()).length === 7);
    expect(only().status).toBe("RUNNING"); // the run was killed, so its end is not reported

    // The run had done steps 8 and 9, which the server has not received, and saved after step 9.
    const written: (Measurement | object)[] = [...Array.from({ length: 9 }, (_, i) => step(i + 1)), step(10), step(11)];
    written.splice(9, 0, { type: "checkpoint", step: 9, folder: "x" }, { type: "evaluation", step: 9, loss: null });
    writeFileSync(join(output, "metrics.jsonl"), written.map((line) => `${JSON.stringify(line)}\n`).join(""));
    const changed = logOf({ name: "tiny", batch: 50, later: true } as { name: string }, {}, 9);
    for (let at = 10; at <= 11; at++) changed.log.record(step(at));
    await changed.log.end("finished");
    expect(changed.notes).toEqual([]);
    expect(losses(only())).toEqual(Array.from({ length: 11 }, (_, i) => [i + 1, 1 / (i + 1)]));
    expect(only().metrics.filter(({ key }) => key === "test/loss")).toMatchObject([{ step: 9, value: Number.NaN }]);
    expect(only().params).toEqual({ name: "tiny", batch: "40", later: "true" });
    expect(only().status).toBe("FINISHED");
    await first.log.end("failed"); // stops the timer

    // Resumes from a checkpoint before the last step that the server has received.
    const again = logOf({ name: "tiny" }, {}, 9);
    for (let at = 10; at <= 13; at++) again.log.record(step(at));
    await again.log.end("finished");
    expect(losses(only()).map(([at]) => at)).toEqual(Array.from({ length: 13 }, (_, i) => i + 1));
  });

  test("goes back to a checkpoint after a lost rank, and sends no step twice", async () => {
    const { log } = logOf();
    const metrics = new MetricFiles(output, 0, log);
    for (let at = 1; at <= 6; at++) metrics.record(step(at));
    await new Promise((resolve) => setTimeout(resolve, 5)); // a later time: otherwise it is the same point
    metrics.rewind(3);
    for (let at = 4; at <= 8; at++) {
      metrics.record(step(at));
      if (at === 6) metrics.record({ type: "evaluation", step: 6, loss: 2 }); // before the other metrics of this step
    }
    metrics.close();
    await log.end("finished");
    expect(losses(only()).map(([at]) => at)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(only().metrics.filter(({ key }) => key === "test/loss")).toHaveLength(1);
  });

  test.each([
    ["deleted", (run: KeptRun) => (run.isDeleted = true)],
    ["gone", () => server.runs.set("run1", undefined as never)],
  ])("is a new one where that was %s there, which is reported", async (_, lose) => {
    const first = logOf();
    first.log.record(step(1));
    await first.log.end("stopped");
    const address = (JSON.parse(readFileSync(join(output, "mlflow.json"), "utf8")) as { server: string }).server;
    expect(address).toBe(server.address);
    lose(only());
    const second = logOf();
    second.log.record(step(2));
    await second.log.end("finished");
    expect(second.notes).toEqual([expect.stringMatching(/no longer has run run1; a new run gets the metrics .*$/)]);
    expect(losses(server.runs.get("run2")!)).toEqual([[2, 1 / 2]]);
  });

  test("on another server, or with an empty file, begins there", async () => {
    for (const text of ['{"server":"http://elsewhere","experiment":"x","run":"run9"}', "{", '{"run":1}']) {
      writeFileSync(join(output, "mlflow.json"), text);
      const before = server.runs.size;
      const { log, notes } = logOf();
      log.record(step(1));
      await log.end("finished");
      expect([server.runs.size, notes]).toEqual([before + 1, []]);
    }
  });
});

describe("a server that is unavailable", () => {
  test("during a run is reported in one line, and gets the missed points once it is back", async () => {
    const { log, notes } = logOf();
    log.record(step(1));
    await until(() => server.runs.size === 1 && losses(only()).length === 1);
    server.down = 503;
    const asked = server.requests.length;
    for (let at = 2; at <= 1500; at++) log.record(step(at));
    await until(() => server.requests.length > asked + 2);
    server.down = undefined;
    await log.end("finished");
    expect(notes).toEqual([expect.stringMatching(/^mlflow: .* answers 503 \(come back later\); the run continues$/)]);
    expect(losses(only()).map(([at]) => at)).toEqual(Array.from({ length: 1500 }, (_, i) => i + 1));
  });

  test("while it answers: what is sent again is stored once", async () => {
    const { log } = logOf();
    log.record(step(1));
    await until(() => server.runs.size === 1 && losses(only()).length === 1);
    server.losesAnswer = true;
    log.record(step(2));
    await until(() => !server.losesAnswer);
    await log.end("finished");
    expect(losses(only()).map(([at]) => at)).toEqual([1, 2]);
  });

  test("at the very end, with all points there, is reported: it shows the run as running", async () => {
    const { log, notes } = logOf();
    log.record(step(1));
    await until(() => server.runs.size === 1 && losses(only()).length === 1);
    server.down = 503;
    await log.end("finished");
    expect(notes).toEqual([
      expect.stringMatching(/^mlflow: the server has all points, but its status of the run could not be set /),
    ]);
  });

  test("because it redirects elsewhere: that is reported, and nothing is sent there", async () => {
    const other = await openTestMlflow();
    try {
      server.elsewhere = `${other.address}/`;
      const { log, notes } = logOf();
      log.record(step(1));
      await log.end("finished");
      expect(notes[0]).toBe(
        `mlflow: ${server.address} redirects to ${other.address}/; set MLFLOW_TRACKING_URI to that address; the run continues`,
      );
      expect(other.requests).toEqual([]);
    } finally {
      await other.close();
    }
  });
});

describe("client and server identity", () => {
  test.each([
    ["a token", { MLFLOW_TRACKING_TOKEN: "t" }, "Bearer t"],
    ["a name", { MLFLOW_TRACKING_USERNAME: "a", MLFLOW_TRACKING_PASSWORD: "ö:" }, `Basic ${btoa("a:\xc3\xb6:")}`],
    [
      "a name before a token",
      { MLFLOW_TRACKING_USERNAME: "a", MLFLOW_TRACKING_PASSWORD: "b", MLFLOW_TRACKING_TOKEN: "t" },
      `Basic ${btoa("a:b")}`,
    ],
  ])("%s", async (_, env, authorization) => {
    await open({ authorization });
    const { log, notes } = logOf({ name: "tiny" }, env);
    log.record(step(1));
    await log.end("finished");
    expect([notes, losses(only())]).toEqual([[], [[1, 1]]]);
    expect(readFileSync(join(output, "mlflow.json"), "utf8")).not.toContain('t","t');
    const stranger = logOf();
    stranger.log.record(step(2));
    await stranger.log.end("finished");
    expect(stranger.notes[0]).toMatch(/answers 401 \(who are you\); the run continues$/);
  });

  test("over TLS with a custom authority, and with no other", async () => {
    const authority = await makeAuthority("mine", 1);
    const { certificate, key } = await issueCertificate(authority, {
      days: 1,
      role: "coordinator",
      hosts: ["127.0.0.1"],
    });
    await open({ tls: { cert: certificate, key } });
    const [ours, others] = [join(output, "ours.pem"), join(output, "others.pem")];
    writeFileSync(ours, authority.certificate.toString("pem"));
    writeFileSync(others, (await makeAuthority("mine", 1)).certificate.toString("pem"));
    for (const env of [{}, { MLFLOW_TRACKING_SERVER_CERT_PATH: others }]) {
      const { log, notes } = logOf({ name: "tiny" }, env);
      log.record(step(1));
      await log.end("finished");
      expect(notes[0]).toMatch(
        /does not answer \(.*; set MLFLOW_TRACKING_SERVER_CERT_PATH to a file with the certificate of its authority\)/,
      );
      expect(server.requests).toEqual([]);
    }
    const { log, notes } = logOf({ name: "tiny" }, { MLFLOW_TRACKING_SERVER_CERT_PATH: ours });
    log.record(step(1));
    await log.end("finished");
    expect([notes, losses(only())]).toEqual([[], [[1, 1]]]);
  });
});

import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { request } from "node:http";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { maxTraceBytes } from "@skein/run-files";
import { requestFile, type RunFacts } from "@skein/run-files/node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { applyRows, type LoadedTables } from "./page/decode-rows.ts";
import type { RunDetails } from "./run-details.ts";
import { serveWatch, type WatchServer } from "./watch-server.ts";
import { WatchedRuns } from "./watched-runs.ts";

const above = mkdtempSync(join(tmpdir(), "skein-watch-"));
const root = join(above, "runs");
const lines = (from: number, to: number): string =>
  Array.from(
    { length: to - from },
    (_, i) => `${JSON.stringify({ type: "step", step: from + i + 1, loss: 1 / (from + i + 1), seconds: 1 })}\n`,
  ).join("");
const addRun = (id: string, text: string): void => {
  mkdirSync(join(root, id), { recursive: true });
  writeFileSync(join(root, id, "metrics.jsonl"), text);
};

let server: WatchServer;
beforeAll(async () => {
  addRun("a/b/1", lines(0, 3));
  writeFileSync(join(root, "a/b/1/job.json"), '{"name":"b","optimizer":{"kind":"adam"}}');
  // A run whose process is this test process, so that it runs during all tests.
  writeFileSync(join(root, "a/b/1/provenance.json"), JSON.stringify({ host: hostname(), pid: process.pid }));
  writeFileSync(join(above, "secret.txt"), "of nobody else");
  mkdirSync(join(above, "outside"));
  writeFileSync(join(above, "outside/metrics.jsonl"), lines(0, 9));
  symlinkSync(join(above, "outside"), join(root, "link"));
  const assets = new Map([["/", { type: "text/html; charset=utf-8", content: "<p>page" }]]);
  server = await serveWatch({ runs: new WatchedRuns(root), assets, port: 0, lookEvery: 10, findEvery: 20 });
});
afterAll(async () => {
  await server.close();
  rmSync(above, { recursive: true });
});

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly policy: string;
}

/** Sends requests with node:http, which sends any path and Host header unchanged. */
const ask = (
  path: string,
  { host, method = "GET", origin }: { readonly host?: string; readonly method?: string; readonly origin?: string } = {},
): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(server.url);
    request(
      {
        hostname,
        port,
        path,
        method,
        headers: { ...(host !== undefined && { host }), ...(origin !== undefined && { origin }) },
      },
      (response) => {
        let text = "";
        response.on("data", (piece: Buffer) => {
          text += piece.toString();
        });
        response.on("end", () =>
          resolve({ status: response.statusCode!, text, policy: String(response.headers["content-security-policy"]) }),
        );
      },
    )
      .on("error", reject)
      .end();
  });

/** Reads events until the runs are as expected. */
const until = async (
  right: (runs: ReadonlyMap<string, RunFacts>) => boolean,
): Promise<ReadonlyMap<string, RunFacts>> => {
  const response = await fetch(`${server.url}api/events`);
  const runs = new Map<string, RunFacts>();
  let text = "";
  for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
    text += piece;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const data = /^data: (.*)$/m.exec(text.slice(0, end))?.[1];
      text = text.slice(end + 2);
      if (data === undefined) continue;
      const update = JSON.parse(data) as { runs: RunFacts[]; gone?: string[] };
      for (const run of update.runs) runs.set(run.id, run);
      for (const id of update.gone ?? []) runs.delete(id);
      if (right(runs)) return runs;
    }
  }
  throw new Error("the events have ended");
};

test("answers this machine's own host names and GET only, and restricts its page", async () => {
  const { port } = new URL(server.url);
  expect(server.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/$/);
  for (const host of [`127.0.0.1:${port}`, `localhost:${port}`]) expect((await ask("/", { host })).status).toBe(200);
  for (const host of ["evil.example", `evil.example:${port}`, "127.0.0.1", `127.0.0.1:${port}.evil.example`, "0.0.0.0"])
    expect((await ask("/api/events", { host })).status).toBe(403);
  for (const method of ["POST", "PUT", "DELETE", "OPTIONS", "HEAD"])
    expect((await ask("/", { method })).status).toBe(405);
  const { policy } = await ask("/");
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toMatch(/unsafe|https?:|\*/);
});

test("only the page may request histograms: of a training run by a file in its folder, otherwise from a checkpoint", async () => {
  await until((all) => all.has("a/b/1"));
  const { port } = new URL(server.url);
  const path = "/api/histograms?run=a/b/1";
  const request = join(root, "a/b/1", requestFile);
  for (const origin of [undefined, "null", "http://evil.example", `https://127.0.0.1:${port}`, `http://127.0.0.1:1`])
    expect([origin, (await ask(path, { method: "POST", ...(origin && { origin }) })).status]).toEqual([origin, 403]);
  const origin = `http://localhost:${port}`;
  expect((await ask(path, { method: "POST", origin, host: `evil.example:${port}` })).status).toBe(403);
  for (const wrong of ["/api/histograms?run=../outside", "/api/histograms?run=link", "/api/histograms"])
    expect([wrong, (await ask(wrong, { method: "POST", origin })).status]).toEqual([wrong, 404]);
  expect((await ask("/api/samples?run=a/b/1", { method: "POST", origin })).status).toBe(405);
  expect(existsSync(request)).toBe(false);
  for (let time = 0; time < 2; time++) expect((await ask(path, { method: "POST", origin })).status).toBe(202);
  expect(readFileSync(request, "utf8")).toBe("");
  rmSync(request);
  expect(JSON.parse((await ask(path)).text)).toEqual({ steps: [], shown: null });

  addRun("over", lines(0, 3));
  writeFileSync(join(root, "over/provenance.json"), '{"ended":{"how":"finished"}}');
  await until((all) => all.get("over")?.state === "finished");
  const { status, text } = await ask("/api/histograms?run=over", { method: "POST", origin });
  expect([status, text]).toEqual([409, expect.stringMatching(/^this run has saved no checkpoint, .*\n$/)]);
  expect(existsSync(join(root, "over", requestFile))).toBe(false);
  rmSync(join(root, "over"), { recursive: true });
});

test("a run that has ended in the meantime gets no request", async () => {
  addRun("ending", lines(0, 3));
  const runs = new WatchedRuns(root);
  await runs.find();
  const late = await serveWatch({ runs, assets: new Map(), port: 0, lookEvery: 1e6, findEvery: 1e9 });
  try {
    const post = (): Promise<Response> =>
      fetch(`${late.url}api/histograms?run=ending`, {
        method: "POST",
        headers: { Origin: late.url.replace(/\/$/, "") },
      });
    expect((await post()).status).toBe(202);
    expect(existsSync(join(root, "ending", requestFile))).toBe(true);
    writeFileSync(join(root, "ending/provenance.json"), '{"ended":{"how":"finished"}}');
    const refused = await post();
    expect([refused.status, await refused.text()]).toEqual([
      409,
      expect.stringMatching(/^this run has saved no check/),
    ]);
    expect(existsSync(join(root, "ending", requestFile))).toBe(false);
  } finally {
    await late.close();
    rmSync(join(root, "ending"), { recursive: true });
  }
});

test("opens no path from a request", async () => {
  for (const path of [
    "/../secret.txt",
    "/%2e%2e/secret.txt",
    "/..%2fsecret.txt",
    "//secret.txt",
    "/api/run?run=../outside",
    "/api/rows?run=..%2Foutside",
    "/api/rows?run=link",
    "/api/run?run=__proto__",
    "/api/run",
    "/api/nothing?run=a/b/1",
    "/favicon.ico",
  ]) {
    const { status, text } = await ask(path);
    expect([path, status]).toEqual([path, 404]);
    expect(text).not.toContain("nobody");
  }
  expect((await ask("/\u007f%", {})).status).toBeGreaterThanOrEqual(400);
});

test("serves traces in a run's folder, and nothing else of it", async () => {
  writeFileSync(join(root, "a/b/1/my-trace.json"), '{"traceEvents":[]}');
  symlinkSync(join(above, "secret.txt"), join(root, "a/b/1/trace.json"));
  const of = (name: string): Promise<Answer> => ask(`/api/trace?run=a/b/1&name=${encodeURIComponent(name)}`);
  expect(await of("my-trace.json")).toMatchObject({ status: 200, text: '{"traceEvents":[]}' });
  for (const name of ["trace.json", "metrics.jsonl", "job.json", "../../../secret.txt", "", "__proto__"])
    expect([name, (await of(name)).status]).toEqual([name, 404]);
  const details = JSON.parse((await ask("/api/run?run=a/b/1")).text) as RunDetails;
  expect(details.traces).toMatchObject([{ name: "my-trace.json", bytes: 18 }]);
  expect(details.traces[0]!.command).toMatch(/^skein-profile report .*my-trace\.json$/);
  truncateSync(join(root, "a/b/1/my-trace.json"), maxTraceBytes + 1); // zeros in a sparse file
  expect((await of("my-trace.json")).status).toBe(413);
});

test("reports new, growing and removed runs", async () => {
  // The server may still list a run that the previous test has removed.
  const runs = await until((all) => all.size === 1 && all.has("a/b/1"));
  expect(runs.get("a/b/1")).toMatchObject({
    state: "running",
    step: 3,
    seconds: 3,
    options: { "optimizer.kind": "adam" },
  });
  const came = until((all) => all.get("later")?.step === 5);
  addRun("later", lines(0, 5));
  await came;
  const grew = until((all) => all.get("later")?.step === 8);
  appendFileSync(join(root, "later/metrics.jsonl"), lines(5, 8));
  await grew;
  const went = until((all) => all.has("a/b/1") && !all.has("later"));
  rmSync(join(root, "later"), { recursive: true });
  await went;
  expect((await ask("/api/run?run=later")).status).toBe(404);
});

test("gives a reconnecting page the rows that it lacks, and all rows where the run was restarted", async () => {
  addRun("again", lines(0, 4));
  await until((all) => all.get("again")?.step === 4);
  const tables: LoadedTables = { generation: -1, byType: new Map() };
  const pull = async (): Promise<number> => {
    const known = [...tables.byType].map(([type, rows]) => `${encodeURIComponent(type)}:${rows.length}`).join(",");
    const query = new URLSearchParams({ run: "again", generation: String(tables.generation), known });
    const response = await fetch(`${server.url}api/rows?${query.toString()}`);
    const message = await response.arrayBuffer();
    applyRows(tables, message);
    return message.byteLength;
  };
  const steps = (): number[] => [...tables.byType.get("step")!.steps.subarray(0, tables.byType.get("step")!.length)];
  const first = await pull();
  expect(steps()).toEqual([1, 2, 3, 4]);
  appendFileSync(
    join(root, "again/metrics.jsonl"),
    `${lines(4, 5)}${JSON.stringify({ type: "a,b:1/ü", step: 5, own: 7 })}\n`,
  );
  await until((all) => all.get("again")?.step === 5 && all.get("again")?.rows["a,b:1/ü"] === 1);
  expect(await pull()).toBeLessThan(2 * first);
  expect(steps()).toEqual([1, 2, 3, 4, 5]);
  expect(tables.byType.get("a,b:1/ü")!.value("own", 0)).toBe(7);
  expect(await pull()).toBeLessThan(100); // no row is sent twice
  writeFileSync(join(root, "again/metrics.jsonl"), lines(0, 2));
  await until((all) => all.get("again")?.step === 2);
  await pull();
  expect(steps()).toEqual([1, 2]);
});

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { findRuns } from "./find-runs.ts";
import { FolderSearch } from "./folder-search.ts";
import { MetricTail } from "./metric-tail.ts";
import { readRun } from "./read-run.ts";
import { readRunFiles } from "./run-files.ts";

const root = mkdtempSync(join(tmpdir(), "skein-run-files-"));
afterAll(() => rmSync(root, { recursive: true }));

let number = 0;
const makeRun = (files: Readonly<Record<string, string>>): string => {
  const folder = join(root, `run-${number++}`);
  mkdirSync(folder);
  for (const [name, text] of Object.entries({ "metrics.jsonl": "", ...files })) writeFileSync(join(folder, name), text);
  return folder;
};

const deep = (count: number): string => `${'{"a":'.repeat(count)}1${"}".repeat(count)}`;

test.each<[string, Readonly<Record<string, string>>, RegExp]>([
  ["a job that is nested deeply", { "job.json": deep(20_000) }, /^job\.json cannot be read: its values are nested/],
  ["a job that is no JSON", { "job.json": "{" }, /^job\.json cannot be read: it is not JSON$/],
  [
    "a job of people with many keys",
    { "job.yaml": Array.from({ length: 30_000 }, (_, i) => `k${i}: ${i}\n`).join("") },
    /^job\.yaml cannot be read: it has \d+ bytes, at most 32768 are allowed$/,
  ],
  ["a job of people that is nested deeply", { "job.yaml": "[".repeat(9000) }, /^job\.yaml cannot be read: .*deeply/],
  [
    "a job of people whose aliases unfold",
    { "job.yaml": `a: &a [${"1,".repeat(99)}]\nb: &b [${"*a,".repeat(99)}]\nc: [${"*b,".repeat(99)}]\n` },
    /^job\.yaml cannot be read: /,
  ],
  [
    "a job with many options",
    { "job.json": JSON.stringify(Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`k${i}`, i]))) },
    /^its job has 5000 options, but only 1000 are shown$/,
  ],
  [
    "a job with many values",
    { "job.json": `[${"1,".repeat(300_000)}1]` },
    /^job\.json cannot be read: it has more than 200000 values$/,
  ],
  [
    "provenance that is nested deeply",
    { "provenance.json": `${"[".repeat(100_000)}${"]".repeat(100_000)}` },
    /^provenance\.json cannot be read: its values are nested deeper than 64$/,
  ],
])("%s is a fault of that run", async (_, files, fault) => {
  const { faults, options } = await readRunFiles(makeRun(files));
  expect(faults).toEqual([expect.stringMatching(fault)]);
  expect(Object.keys(options).length).toBeLessThanOrEqual(1000);
});

test("long option values are cut, and keys of any length take no time", async () => {
  const job = { name: "a-".repeat(200_000), ["k".repeat(100_000)]: { inner: 1 }, short: [1, 2] };
  const { options } = await readRunFiles(makeRun({ "job.json": JSON.stringify(job) }));
  expect(options["name"]).toHaveLength(501);
  expect(options["short"]).toBe("[1,2]");
  expect(Object.keys(options)).toEqual(["name", "short"]);
});

test("pipes, folders, links and endless files in place of files are faults, or ignored", async () => {
  const folder = makeRun({ "job.yaml": "name: b" });
  for (const name of ["job.json", "summary.json"]) execFileSync("mkfifo", [join(folder, name)]);
  mkdirSync(join(folder, "provenance.json"));
  const { faults, options } = await readRunFiles(folder);
  expect(options).toEqual({ name: "b" });
  expect(faults).toEqual(
    ["job.json", "summary.json", "provenance.json"].map((name) => `${name} cannot be read: it is no regular file`),
  );
  rmSync(join(folder, "job.json"));
  writeFileSync(join(folder, "job.json"), "");
  truncateSync(join(folder, "job.json"), 2 ** 40);
  rmSync(join(folder, "summary.json"));
  symlinkSync("/dev/zero", join(folder, "summary.json"));
  const again = await readRunFiles(folder);
  expect(again.faults[0]).toBe(`job.json cannot be read: it has ${2 ** 40} bytes, at most 4194304 are allowed`);
  expect(again.summary).toBeUndefined();
});

test("nothing of an unchanged run is read again", async () => {
  const folder = makeRun({ "metrics.jsonl": '{"type":"step","step":1}\n', "job.json": '{"name":"a"}' });
  for (const name of ["metrics.jsonl", "job.json"]) utimesSync(join(folder, name), 1e9, 1e9);
  const tail = new MetricTail();
  const first = await readRun({ folder, place: tail.place, stamps: undefined });
  tail.take(first.tail!);
  expect(first.beside!.files.options).toEqual({ name: "a" });
  const { stamps } = first.beside!;
  expect(await readRun({ folder, place: tail.place, stamps })).toEqual({});
  writeFileSync(join(folder, "summary.json"), '{"testLoss":1}');
  const { tail: none, beside } = await readRun({ folder, place: tail.place, stamps });
  expect([none, beside!.files.summary]).toEqual([undefined, { testLoss: 1 }]);
});

test("an unchanged folder is not listed again, and no run is missed because of it", () => {
  const above = join(root, "search");
  mkdirSync(join(above, "a/b"), { recursive: true });
  writeFileSync(join(above, "a/b/metrics.jsonl"), "");
  const search = new FolderSearch(above);
  const ids = (): string[] => [...search.sweep()].flatMap((run) => run?.id ?? []).toSorted();
  utimesSync(above, 1e9, 1e9);
  expect(ids()).toEqual(["a/b"]);
  mkdirSync(join(above, "later"));
  writeFileSync(join(above, "later/metrics.jsonl"), "");
  utimesSync(above, 1e9, 1e9); // as if no entry had been added
  expect(ids()).toEqual(["a/b"]);
  utimesSync(above, 1e9, 1e9 + 1);
  expect(ids()).toEqual(["a/b", "later"]);
  mkdirSync(join(above, "a/b/c")); // the folder was changed recently, so it is listed each time
  expect(ids()).toEqual(["a/b", "later"]);
  writeFileSync(join(above, "a/b/c/metrics.jsonl"), "");
  rmSync(join(above, "later"), { recursive: true });
  expect(ids()).toEqual(["a/b", "a/b/c"]);
  expect(findRuns(above)).toEqual(["a/b", "a/b/c"]);
  for (const name of ["0/1/2/3", "z"]) {
    mkdirSync(join(above, name), { recursive: true });
    writeFileSync(join(above, name, "metrics.jsonl"), "");
  }
  const found = [...search.sweep()].flatMap((run) => run?.id ?? []);
  expect(found.map((id) => id.split("/").length)).toEqual([1, 2, 3, 4]); // a deep tree does not delay runs above it
});

import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { pidNamespace } from "@skein/cli/node";
import { statusOf } from "@skein/cli/start";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { holderFile, holdOutput, type HoldOptions, type HoldTimes } from "./hold-output.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "skein-held-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const times: HoldTimes = { patience: 200, pollMilliseconds: 5, beatMilliseconds: 20, silence: 200 };
const hold = (what: string, others: Partial<HoldOptions> = {}): Promise<() => void> =>
  holdOutput(folder, { what, times, ...others });
const path = (): string => join(folder, holderFile);

const place = pidNamespace();
const holder = { host: hostname(), pid: process.pid, place, since: "2026-01-01T00:00:00.000Z", id: "a" };
const leave = (content: unknown): void =>
  writeFileSync(path(), typeof content === "string" ? content : JSON.stringify(content));

test("a folder is locked once at a time, and the lock leaves nothing behind", async () => {
  const release = await hold("a run");
  await expect(hold("a run")).rejects.toThrow(
    /a run is writing there \(process \d+, this one, since .*let it end.*remove .*\.held-by\.json$/,
  );
  release();
  expect(readdirSync(folder)).toEqual([]);
  (await hold("a run"))();
});

test("another live process holds it; once killed it does not", async () => {
  const other = spawn(process.execPath, ["-e", "setInterval(() => undefined, 1000)"]);
  await once(other, "spawn");
  const theirs = { ...holder, pid: other.pid, began: statusOf(other.pid!).began };
  leave(theirs);
  const refusal = `a sweep is writing there (process ${other.pid}, since`;
  if (process.platform === "linux") await expect(hold("a sweep")).rejects.toThrow(refusal);
  leave({ ...holder, pid: other.pid, began: "1" }); // an earlier process with the same id
  (await hold("a sweep"))();
  leave(theirs);
  other.kill("SIGKILL");
  await once(other, "exit");
  (await hold("a sweep", { times: { ...times, silence: 1e9 } }))(); // concurrent attempts
  expect(readdirSync(folder)).toEqual([]);
});

test.skipIf(process.platform !== "linux")(
  "a process that was killed holds nothing, even if its parent has not reaped it yet",
  async () => {
    // The shell is replaced by another program, which does not wait for the child process started before.
    const parent = spawn("sh", ["-c", "sleep 60 & echo $!; exec sleep 60"], { stdio: ["ignore", "pipe", "ignore"] });
    const [line] = (await once(parent.stdout, "data")) as [Buffer];
    const pid = Number(String(line));
    leave({ ...holder, pid, began: statusOf(pid).began });
    await expect(hold("a run")).rejects.toThrow(`(process ${pid}, since`);
    process.kill(pid, "SIGKILL");
    await vi.waitFor(() => expect(readFileSync(`/proc/${pid}/stat`, "latin1")).toContain(") Z "), { timeout: 30_000 });
    (await hold("a run"))();
    parent.kill("SIGKILL");
    await once(parent, "exit");
  },
);

test.each([
  ["an earlier process with this number", { ...holder }],
  ["a process of another machine", { ...holder, host: "elsewhere.invalid", place: "another boot" }],
  ["a process of another container, whose number a live one has here", { ...holder, pid: 1, place: "other pid ns" }],
  [
    "a process that said no place, nor when it began, whose number a live one has",
    { ...holder, pid: 1, place: "unknown" },
  ],
  ["a version before places", { ...holder, pid: 1, place: undefined }],
  ["one that was torn", '{"host":'],
  ["nothing", ""],
  ["100,000 nested lists", "[".repeat(1e5) + "]".repeat(1e5)],
  ["another program", '{"pid": 1}'],
])("a lock left by %s is ignored", async (_, left) => {
  leave(left);
  const release = await hold("a run");
  expect(JSON.parse(readFileSync(path(), "utf8"))).toMatchObject({ pid: process.pid });
  release();
  expect(readdirSync(folder)).toEqual([]);
});

const foreign = { ...holder, pid: 1, place: "another pid namespace", id: "foreign" };

test("a process of another container holds it while it touches its file, and is waited for with a message", async () => {
  leave(foreign);
  const beats = setInterval(() => utimesSync(path(), new Date(), new Date()), 10);
  const notes: string[] = [];
  const patient = { ...times, silence: 1e9 };
  await expect(hold("a run", { times: patient, note: (line) => void notes.push(line) })).rejects.toThrow(
    "a run is writing there (process 1, since",
  );
  clearInterval(beats);
  expect(notes).toEqual([expect.stringContaining("in another container or on another machine; waiting up to")]);
  let looks = 0;
  const stopped = hold("a run", { times: patient, isStopped: () => ++looks > 3 });
  await expect(stopped).rejects.toThrow("stopped while waiting for");
  expect(JSON.parse(readFileSync(path(), "utf8"))).toEqual(foreign);
});

test("a holder touches its file, and notices if another has taken it", async () => {
  let taken: (error: Error) => void;
  const takeoverError = new Promise<Error>((resolve) => (taken = resolve));
  const release = await hold("a run", { onTaken: (error) => taken(error) });
  const before = statSync(path()).mtimeMs;
  await vi.waitFor(() => expect(statSync(path()).mtimeMs).not.toBe(before), { timeout: 30_000 });
  rmSync(path());
  leave(foreign);
  expect((await takeoverError).message).toContain("process 1, since 2026-01-01T00:00:00.000Z has taken the folder");
  release();
  expect(JSON.parse(readFileSync(path(), "utf8"))).toEqual(foreign);
});

test("anything but a file in its place is named, and left there", async () => {
  mkdirSync(path());
  await expect(hold("a run")).rejects.toThrow(/\.held-by\.json is a folder, .*; remove it$/);
  rmSync(path(), { recursive: true });
  symlinkSync("/dev/zero", path());
  await expect(hold("a run")).rejects.toThrow(/\.held-by\.json is not a regular file, .*; remove it$/);
});

test("a folder that does not exist is held by nobody, and reported by those who write there", async () => {
  (await holdOutput(join(folder, "gone"), { what: "a run" }))();
});

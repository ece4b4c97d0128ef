import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { holderFile, holdOutput } from "./hold-output.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "skein-held-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const holder = { host: hostname(), pid: process.pid, since: "2026-01-01T00:00:00.000Z", id: "a" };
const leave = (content: unknown): void =>
  writeFileSync(join(folder, holderFile), typeof content === "string" ? content : JSON.stringify(content));

test("a folder is held once at a time, and leaves nothing behind", () => {
  const release = holdOutput(folder, "a run");
  expect(() => holdOutput(folder, "a run")).toThrow(
    /a run is under way there \(process \d+, this one, since .*let it end/,
  );
  release();
  expect(readdirSync(folder)).toEqual([]);
  holdOutput(folder, "a run")();
});

test("another process that lives holds it; once it was killed it does not", async () => {
  const other = spawn(process.execPath, ["-e", "setInterval(() => undefined, 1000)"]);
  await once(other, "spawn");
  leave({ ...holder, pid: other.pid });
  expect(() => holdOutput(folder, "a sweep")).toThrow(`a sweep is under way there (process ${other.pid}, since`);
  leave({ ...holder, pid: other.pid, began: "1" }); // an earlier one with the same number
  holdOutput(folder, "a sweep")();
  leave({ ...holder, pid: other.pid });
  other.kill("SIGKILL");
  await once(other, "exit");
  holdOutput(folder, "a sweep")();
  expect(readdirSync(folder)).toEqual([]);
});

test.skipIf(process.platform !== "linux")(
  "a process that was killed holds nothing, though nobody has asked for its end yet",
  async () => {
    // The shell becomes another program, which does not wait for the child that it began before.
    const parent = spawn("sh", ["-c", "sleep 60 & echo $!; exec sleep 60"], { stdio: ["ignore", "pipe", "ignore"] });
    const [line] = (await once(parent.stdout, "data")) as [Buffer];
    const pid = Number(String(line));
    leave({ ...holder, pid });
    expect(() => holdOutput(folder, "a run")).toThrow(`(process ${pid}, since`);
    process.kill(pid, "SIGKILL");
    await vi.waitFor(() => expect(readFileSync(`/proc/${pid}/stat`, "latin1")).toContain(") Z "), { timeout: 30_000 });
    holdOutput(folder, "a run")();
    parent.kill("SIGKILL");
    await once(parent, "exit");
  },
);

test.each([
  ["an earlier process with this number", { ...holder }],
  ["another machine", { ...holder, host: "elsewhere.invalid" }],
  ["one that was torn", '{"host":'],
  ["nothing", ""],
])("what was left by %s is passed over", (_, left) => {
  leave(left);
  const release = holdOutput(folder, "a run");
  expect(JSON.parse(readFileSync(join(folder, holderFile), "utf8"))).toMatchObject({ pid: process.pid });
  release();
  expect(readdirSync(folder)).toEqual([]);
});

test("a folder that is not there is held by nobody, and told by who writes there", () => {
  holdOutput(join(folder, "gone"), "a run")();
});

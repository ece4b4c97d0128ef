import { readGit } from "@skein/run-files/node";
import { expect, test, vi } from "vitest";
import { describeError, DamagedCheckpointError, exitCodeOf, isShortage, reviveError } from "@skein/cli/node";
import { residentBytes } from "../src/rank/resident-bytes.ts";

const failed = (code: string, message: string): Error => Object.assign(new Error(message), { code });

test.each([
  ["EMFILE", failed("EMFILE", "EMFILE: too many open files, open 'a'"), "out-of-handles"],
  ["a thread", failed("ERR_WORKER_INIT_FAILED", "Worker initialization failure: EMFILE"), "out-of-handles"],
  ["modules", failed("ERR_X", "Cannot read package config /a/package.json: too many open files."), "out-of-handles"],
  ["an error of ours", new DamagedCheckpointError("a cannot be read: ENFILE: file table overflow"), "out-of-handles"],
  ["a process", failed("EAGAIN", "spawn /usr/bin/node EAGAIN"), "out-of-processes"],
  ["a thread without a process", failed("ERR_WORKER_INIT_FAILED", "EAGAIN"), "out-of-processes"],
])("a shortage reported by %s is one line with a cure", (_, error, code) => {
  const report = describeError(error);
  expect(report).toMatchObject({ kind: "environment", code });
  expect(report.message).toMatch(/^no .* \(.*\); raise .*$/);
  expect([isShortage(report), exitCodeOf(report)]).toEqual([true, 1]);
  // An error from a rank has the name of the rank, and is not explained twice.
  expect(describeError(reviveError(report, "rank 1")).message).toBe(`rank 1: ${report.message}`);
});

test("a socket that would block is not a shortage of processes", () => {
  expect(describeError(failed("EAGAIN", "read EAGAIN")).code).toBe("EAGAIN");
});

test("omits a memory value that the system does not report", () => {
  vi.spyOn(process.memoryUsage, "rss").mockImplementationOnce(() => {
    throw failed("EMFILE", "EMFILE: too many open files, uv_resident_set_memory");
  });
  expect(residentBytes()).toBeUndefined();
  expect(residentBytes()).toBeGreaterThan(0);
});

test("returns undefined if git cannot be started", async () => {
  expect(await readGit("/no/such/folder")).toBeUndefined();
});

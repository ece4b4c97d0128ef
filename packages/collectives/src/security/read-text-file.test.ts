import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { readTextFile } from "./read-text-file.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-text-file-"));
afterAll(() => rmSync(folder, { recursive: true }));

test.each([0, 1, 15, 16])("reads %i bytes if 16 are allowed", (size) => {
  const path = join(folder, String(size));
  writeFileSync(path, "x".repeat(size));
  expect(readTextFile(path, 16).text).toBe("x".repeat(size));
});

test("rejects one more byte, with both sizes", () => {
  const path = join(folder, "large");
  writeFileSync(path, "x".repeat(17));
  expect(() => readTextFile(path, 16)).toThrow("it has 17 bytes, at most 16 are allowed");
});

test.runIf(process.platform === "linux")("rejects endless files, and files larger than their reported size", () => {
  const pipe = join(folder, "pipe");
  execFileSync("mkfifo", [pipe]);
  for (const path of ["/dev/zero", pipe, folder]) expect(() => readTextFile(path, 16)).toThrow("it is no regular file");
  expect(() => readTextFile("/proc/self/maps", 16)).toThrow("it grew beyond 16 bytes");
  const { text } = readTextFile("/proc/self/maps", 2 ** 22); // The reported size is 0.
  expect(text.length).toBeGreaterThan(4097);
  expect(text.endsWith("\n")).toBe(true);
  expect(() => readTextFile(join(folder, "nowhere"), 16)).toThrow("ENOENT");
});

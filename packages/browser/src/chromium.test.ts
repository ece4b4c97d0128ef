import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { findChromium } from "./chromium.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-chromium-"));
afterAll(() => rmSync(folder, { recursive: true }));

const program = (name: string, mode: number): string => {
  const path = join(folder, name);
  writeFileSync(path, "");
  chmodSync(path, mode);
  return path;
};

test("uses CHROMIUM_PATH, which must name a file", () => {
  const path = program("my-browser", 0o755);
  expect(findChromium({ CHROMIUM_PATH: path, PATH: "/usr/bin" })).toBe(path);
  expect(() => findChromium({ CHROMIUM_PATH: join(folder, "absent") })).toThrow(
    /CHROMIUM_PATH is .*absent, but there is no such file/,
  );
});

test("otherwise finds the first executable with a usual name on PATH", () => {
  program("chromium", 0o644);
  const path = program("google-chrome", 0o755);
  expect(findChromium({ PATH: ["/nowhere", folder].join(delimiter) })).toBe(path);
  expect(findChromium({ CHROMIUM_PATH: "", PATH: folder })).toBe(path);
});

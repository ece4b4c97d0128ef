import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, test } from "vitest";
import { parseBoundedJson, readBoundedJson } from "./bounded-json.ts";

const folder = mkdtempSync(join(tmpdir(), "skein-json-"));
afterAll(() => rmSync(folder, { recursive: true }));

test("reads what JSON.parse reads, whatever brackets and quotes are in strings", () => {
  const unit = fc.constantFrom("[", "{", "]", '"', "\\", "a", "\n");
  fc.assert(
    fc.property(fc.jsonValue(), fc.array(fc.string({ unit, maxLength: 300 })), (value, strings) => {
      const text = JSON.stringify([value, strings], undefined, 1);
      expect(parseBoundedJson(text)).toEqual(JSON.parse(text));
    }),
  );
});

test.each([
  ["[".repeat(1e5) + "]".repeat(1e5), "its values are nested deeper than 1000 levels"],
  ['{"a":'.repeat(1e5), "its values are nested deeper than 1000 levels"],
  ['"'.repeat(99_999), "it is not valid JSON"],
  [`["${"\\".repeat(99_999)}`, "it is not valid JSON"],
  ["", "it is not valid JSON"],
])("refuses %.10s…", (text, message) => {
  expect(() => parseBoundedJson(text)).toThrow(message);
});

test.runIf(process.platform === "linux")("reads only regular files of bounded size", () => {
  const path = (name: string): string => join(folder, name);
  mkdirSync(path("folder"));
  execFileSync("mkfifo", [path("pipe")]);
  symlinkSync("/dev/zero", path("endless"));
  writeFileSync(path("large"), JSON.stringify("x".repeat(100)));
  for (const name of ["folder", "pipe", "endless"])
    expect(() => readBoundedJson(path(name))).toThrow("it is no regular file");
  expect(() => readBoundedJson(path("large"), 50)).toThrow("it has 102 bytes, at most 50 are allowed");
  expect(readBoundedJson(path("large"))).toHaveLength(100);
});

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  ConfigError,
  explainPath,
  makeFolders,
  removeEmpty,
  requireReplaceable,
  requireWritable,
} from "@skein/cli/node";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { claimOutput, dropUnusedOutput, requireOutput } from "../src/output-folder/output-folder.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "skein-places-"));
  writeFileSync(join(folder, "file"), "kept");
  mkdirSync(join(folder, "folder"));
  symlinkSync("circle", join(folder, "circle"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const before = ["circle", "file", "folder"];

describe("a writable path stays unchanged", () => {
  test.each(["new", "file", "folder/new", "/dev/null"])("%s", (path) => {
    const place = path.startsWith("/") ? path : join(folder, path);
    requireWritable(place, "--trace");
    expect([readdirSync(folder).toSorted(), readdirSync(join(folder, "folder"))]).toEqual([before, []]);
    expect(readFileSync(join(folder, "file"), "utf8")).toBe("kept");
  });
});

describe("an unwritable path is reported with the system's code, and stays unchanged", () => {
  const places: [string, string][] = [
    ["no/such", "ENOENT"],
    ["folder", "EISDIR"],
    ["file/new", "ENOTDIR"],
    ["circle", "ELOOP"],
    ["n".repeat(300), "ENAMETOOLONG"],
    ["/proc/new", "ENOENT"],
  ];
  test.each(places)("file %s: %s", (path, code) => {
    const place = path.startsWith("/") ? path : join(folder, path);
    expect(() => requireWritable(place, "--trace")).toThrow(ConfigError);
    expect(() => requireWritable(place, "--trace")).toThrow(
      new RegExp(`^--trace .*: cannot be written \\(${code}: .*\\); name a file`),
    );
    expect(readdirSync(folder).toSorted()).toEqual(before);
  });

  test("a file of a run that is a link, wherever it points", () => {
    for (const target of ["file", "not-there"]) {
      symlinkSync(join(folder, target), join(folder, "folder", "metrics.jsonl"));
      expect(() => requireOutput(join(folder, "folder"))).toThrow(/metrics\.jsonl is a symbolic link, .*; remove it$/);
      rmSync(join(folder, "folder", "metrics.jsonl"));
    }
    expect(readFileSync(join(folder, "file"), "utf8")).toBe("kept");
    expect(readdirSync(folder).toSorted()).toEqual(before);
  });

  test("a file that is replaced must be a regular one, in a writable folder", () => {
    requireReplaceable(join(folder, "file"), "--output");
    for (const [path, text] of [
      [join(folder, "folder"), /is a folder; name a file/],
      ["/dev/null", /is not a regular file; name a file/],
      [join(folder, "file/x"), /ENOTDIR/],
      ["/proc/links.json", /ENOENT/],
    ] as const)
      expect(() => requireReplaceable(path, "--output")).toThrow(text);
    expect(readdirSync(folder).toSorted()).toEqual(before);
  });

  test.each(["EACCES", "EROFS", "EPERM"])("%s from the system is a usage error", (code) => {
    const error = explainPath(Object.assign(new Error("refused"), { code }), "--trace x", "name another");
    expect(error).toBeInstanceOf(ConfigError);
    expect((error as Error).message).toMatch(`--trace x: cannot be written (${code}: `);
  });

  test("a full disk says nothing about the path", () => {
    const error = Object.assign(new Error("full"), { code: "ENOSPC" });
    expect(explainPath(error, "--trace x", "name another")).toBe(error);
  });
});

describe("folders", () => {
  test("are created with their parents, and removed as far as they are empty", () => {
    const made = makeFolders(join(folder, "a/b/c"));
    expect(made).toEqual(["a", "a/b", "a/b/c"].map((name) => join(folder, name)));
    expect(makeFolders(join(folder, "a/b/c"))).toEqual([]);
    writeFileSync(join(folder, "a/of-another"), "");
    removeEmpty(made);
    expect(readdirSync(join(folder, "a"))).toEqual(["of-another"]);
  });

  test.each(["/proc/new/below", "/sys/new/below"])("below %s are refused at once", (path) => {
    expect(() => makeFolders(path)).toThrow(/^E[A-Z]+: /);
  });

  test("of an output that cannot be created are reported, and none is left behind", () => {
    for (const path of ["file", "file/below", "circle/below"]) {
      const place = join(folder, path);
      expect(() => claimOutput("job", place)).toThrow(
        /^--output .*: cannot be written \(E[A-Z]+: .*\); name a folder that you may write to$/,
      );
    }
    expect(readdirSync(folder).toSorted()).toEqual(before);
    dropUnusedOutput(claimOutput("job", join(folder, "x/y/z")));
    expect(existsSync(join(folder, "x"))).toBe(false);
  });

  test("where a path of the run is something else are refused before it begins", () => {
    const output = join(folder, "folder");
    requireOutput(output);
    expect(readdirSync(output)).toEqual([]);
    writeFileSync(join(output, "checkpoints"), "");
    expect(() => requireOutput(output)).toThrow(/^output folder .*: .*checkpoints: cannot be written \(ENOTDIR: /);
    rmSync(join(output, "checkpoints"));
    mkdirSync(join(output, "metrics.jsonl"));
    expect(() => requireOutput(output)).toThrow(/metrics\.jsonl: cannot be written \(EISDIR: a folder exists there\)/);
  });
});

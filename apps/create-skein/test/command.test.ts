import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

let scratch: string;
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), "create-skein-"));
});
afterEach(() => rmSync(scratch, { recursive: true, force: true }));

const create = (...words: readonly string[]): { code: number | null; out: string; err: string } => {
  const program = join(import.meta.dirname, "../src/main.ts");
  const env = { ...process.env, npm_config_user_agent: "npm/11.0.0" };
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...words], {
    cwd: scratch,
    env,
    encoding: "utf8",
  });
  return { code: status, out: stdout, err: stderr };
};

test("asks nothing if flags are given, and ends with the next two commands", () => {
  const { code, out, err } = create("my-run", "--template", "text");
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out.trimEnd().split("\n").slice(-2)).toEqual(["  cd my-run && npm install", "  npm start"]);
  expect(existsSync(join(scratch, "my-run/text.txt"))).toBe(true);
});

test("prints which template is used if there is no terminal", () => {
  const { code, err } = create("my-run");
  expect(code).toBe(0);
  expect(err).toBe(
    "no --template was given and there is no terminal to ask on: using images; the other templates are text, own\n",
  );
  expect(existsSync(join(scratch, "my-run/digits.yaml"))).toBe(true);
});

test("accepts my-run and own, which npm passes on from: npm create skein my-run --template own", () => {
  expect(create("my-run", "own")).toMatchObject({ code: 0, err: "" });
  expect(existsSync(join(scratch, "my-run/data.ts"))).toBe(true);
});

test("creates the project in the working folder", () => {
  const folder = join(scratch, "here");
  mkdirSync(folder);
  const { code, out } = create("./here/../here", "--template", "own");
  expect({ code, files: existsSync(join(folder, "job.yaml")) }).toEqual({ code: 0, files: true });
  expect(out).toContain("  cd ./here/../here && npm install");
});

test.each([
  ["an empty folder", ["", "own"], /^which folder\? Name one/],
  ["no folder", [], /^which folder\? Name one: npm create skein@latest my-run/],
  [
    "an unknown template",
    ["my-run", "--template", "audio"],
    /'audio' is invalid. Allowed choices are images, text, own\./,
  ],
  ["an unknown option", ["my-run", "--tempate", "own"], /unknown option '--tempate'/],
  ["two folders", ["a", "b"], /'b' is invalid for argument 'template'. Allowed choices are images, text, own\./],
  ["three folders", ["a", "own", "c"], /too many arguments/],
  ["a bad name", ["My Run", "--template", "own"], /not a valid npm name.*name the folder my-run/],
  ["a folder that is not empty", ["full", "--template", "own"], /full is not empty: it contains file;/],
  ["a file as the place", ["full/file", "--template", "own"], /is a file;/],
  ["a place below a file", ["full/file/x", "--template", "own"], /cannot be used/],
])("ends with one line and code 2 for %s, and writes nothing", (_, words, line) => {
  mkdirSync(join(scratch, "full"));
  writeFileSync(join(scratch, "full/file"), "");
  const { code, out, err } = create(...words);
  expect({ code, out }).toEqual({ code: 2, out: "" });
  expect(err).toMatch(line);
  expect(err.trimEnd()).not.toContain("\n");
  expect(readdirSync(scratch, { recursive: true }).toSorted()).toEqual(["full", join("full", "file")]);
});

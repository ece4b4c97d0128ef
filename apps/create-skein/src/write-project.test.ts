import { execFileSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import nodeTypes from "../node_modules/@types/node/package.json" with { type: "json" };
import trainer from "skein-train/package.json" with { type: "json" };
import zod from "zod/package.json" with { type: "json" };
import { CreateError } from "./errors.ts";
import { templateNames, templates } from "./templates.ts";
import { type Project, writeProject } from "./write-project.ts";

let scratch: string;
beforeEach(() => {
  scratch = mkdtempSync(join(tmpdir(), "create-skein-"));
});
afterEach(() => rmSync(scratch, { recursive: true, force: true }));

const project: Project = { name: "my-run", template: "own", manager: "npm" };
const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

test.each(templateNames)(
  "writes a project from template %s with every file that its scripts name, and no placeholder left",
  (template) => {
    const folder = join(scratch, "my-run");
    writeProject(folder, { ...project, template });
    const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    expect(manifest).toMatchObject({
      name: "my-run",
      private: true,
      type: "module",
      engines: { node: ">=22.18" },
      scripts: { start: expect.stringMatching(/^skein-train run /), test: "node --test", watch: expect.any(String) },
      dependencies: { "skein-train": trainer.version },
      devDependencies: { "@types/node": `^${nodeTypes.version}` },
    });
    for (const name of templates[template].packages)
      expect(manifest.dependencies[name]).toBe(
        name === "zod" ? `^${zod.version}` : trainer.peerDependencies[name as "sharp"],
      );
    expect(Object.values({ ...manifest.dependencies, ...manifest.devDependencies })).not.toContain(undefined);
    // Packages imported by the project's modules in addition to Skein's packages.
    mkdirSync(join(folder, "node_modules"));
    symlinkSync(join(import.meta.dirname, "../node_modules/zod"), join(folder, "node_modules/zod"));
    for (const job of Object.values(templates[template].jobs)) {
      expect(existsSync(join(folder, job))).toBe(true);
      const bin = join(import.meta.dirname, "../../trainer/bin/skein-train.js");
      expect(execFileSync(process.execPath, [bin, "validate", join(folder, job)], { encoding: "utf8" })).toContain(
        "valid",
      );
    }
    expect(existsSync(join(folder, ".gitignore"))).toBe(true);
    expect(existsSync(join(folder, "learns.test.ts"))).toBe(true);
    rmSync(join(folder, "node_modules"), { recursive: true });
    for (const file of filesIn(folder)) expect(readFileSync(file, "utf8"), file).not.toContain("{{");
    expect(readdirSync(scratch)).toEqual(["my-run"]);
    expect(statSync(folder).mode & 0o777).toBe(0o777 & ~process.umask());
  },
);

test("lists every imported package as a dependency", () => {
  for (const template of templateNames) {
    const folder = join(scratch, template);
    writeProject(folder, { ...project, template });
    const { dependencies } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const imported = filesIn(folder)
      .filter((file) => file.endsWith(".ts"))
      .flatMap((file) => [...readFileSync(file, "utf8").matchAll(/from "([^."][^"]*)"/g)].map((match) => match[1]!))
      .filter((name) => !name.startsWith("node:"));
    expect(imported.length).toBeGreaterThan(0);
    expect(Object.keys(dependencies)).toEqual(expect.arrayContaining(imported));
  }
});

test("writes pnpm settings only for pnpm", () => {
  writeProject(join(scratch, "a"), { ...project, manager: "pnpm" });
  writeProject(join(scratch, "b"), { ...project, manager: "yarn" });
  expect(readFileSync(join(scratch, "a/pnpm-workspace.yaml"), "utf8")).toContain("msgpackr-extract: false");
  expect(existsSync(join(scratch, "b/pnpm-workspace.yaml"))).toBe(false);
});

test("keeps an existing empty folder and the repository in it", () => {
  const folder = join(scratch, "my-run");
  mkdirSync(join(folder, ".git"), { recursive: true });
  writeFileSync(join(folder, ".git/HEAD"), "ref: refs/heads/main\n");
  const { ino } = statSync(folder);
  writeProject(folder, project);
  expect(statSync(folder).ino).toBe(ino);
  expect(readFileSync(join(folder, ".git/HEAD"), "utf8")).toBe("ref: refs/heads/main\n");
  expect(existsSync(join(folder, "package.json"))).toBe(true);
  expect(
    readdirSync(folder)
      .filter((name) => name.startsWith("."))
      .toSorted(),
  ).toEqual([".git", ".gitignore"]);
});

test("creates missing parent folders", () => {
  writeProject(join(scratch, "a/b/my-run"), project);
  expect(existsSync(join(scratch, "a/b/my-run/job.yaml"))).toBe(true);
});

const refused: readonly (readonly [string, string, (place: string) => void, RegExp])[] = [
  [
    "a folder that is not empty",
    "a",
    (place) => (mkdirSync(place), writeFileSync(join(place, "x"), "")),
    /is not empty: it contains x;/,
  ],
  [
    "a folder with many files",
    "a",
    (place) => (mkdirSync(place), [..."wxyz"].forEach((name) => writeFileSync(join(place, name), ""))),
    /contains w, x, y and 1 more;/,
  ],
  ["a file", "a", (place) => writeFileSync(place, ""), /is a file;/],
  ["a link that leads nowhere", "a", (place) => symlinkSync("nowhere", place), /cannot be used \(/],
  [
    "a folder below a file",
    "file/deep/a",
    (place) => writeFileSync(dirname(dirname(place)), ""),
    /cannot be used \((ENOTDIR|EEXIST)/,
  ],
  [
    "a folder inside a folder with too long a name",
    `new/${"x".repeat(300)}/a`,
    () => undefined,
    /cannot be used \(ENAMETOOLONG/,
  ],
];

test.each(refused)("rejects %s in one line and leaves nothing behind", (_, path, prepare, message) => {
  const place = join(scratch, path);
  prepare(place);
  const before = readdirSync(scratch, { recursive: true }).toSorted();
  const attempt = (): void => writeProject(place, project);
  expect(attempt).toThrow(CreateError);
  expect(attempt).toThrow(message);
  expect(attempt).not.toThrow(/\n/);
  expect(readdirSync(scratch, { recursive: true }).toSorted()).toEqual(before);
});

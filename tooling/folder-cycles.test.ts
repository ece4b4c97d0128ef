import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { folderCycles } from "./folder-cycles.ts";

let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "skein-folders-"));
});
afterEach(() => rmSync(root, { recursive: true }));

/** Writes a file tree, given the imports of each file, and returns its import cycles. */
const cyclesOf = (tree: Readonly<Record<string, readonly string[]>>): string[] => {
  for (const [path, imports] of Object.entries(tree)) {
    mkdirSync(join(root, dirname(path)), { recursive: true });
    writeFileSync(join(root, path), imports.map((to) => `import { a } from "${to}";\n`).join(""));
  }
  return folderCycles(root).map((line) => line.replaceAll(root, ""));
};

test("folders that import one way pass", () => {
  expect(cyclesOf({ "index.ts": ["./a/one.ts"], "a/one.ts": ["../b/two.ts", "../errors.ts"], "b/two.ts": [] })).toEqual(
    [],
  );
});

test("two folders that import each other fail, though their files form no cycle", () => {
  const tree = { "a/one.ts": ["../b/two.ts"], "a/three.ts": [], "b/two.ts": ["../a/three.ts"] };
  expect(cyclesOf(tree)).toEqual([": a/one.ts imports b/two.ts, b/two.ts imports a/three.ts"]);
});

test("a cycle through a file of the folder above fails", () => {
  const tree = { "a/one.ts": ["../errors.ts"], "a/two.ts": [], "errors.ts": ["./a/two.ts"] };
  expect(cyclesOf(tree)).toEqual([": a/one.ts imports errors.ts, errors.ts imports a/two.ts"]);
});

test("a cycle between folders at a deeper level fails", () => {
  const tree = { "a/b/one.ts": ["../c/two.ts"], "a/b/three.ts": [], "a/c/two.ts": ["../b/three.ts"] };
  expect(cyclesOf(tree)).toEqual(["/a: a/b/one.ts imports a/c/two.ts, a/c/two.ts imports a/b/three.ts"]);
});

test("type-only, re-exporting and dynamic imports count; imports of tests do not", () => {
  mkdirSync(join(root, "a"));
  mkdirSync(join(root, "b"));
  writeFileSync(join(root, "a/one.ts"), 'export type { T } from "../b/two.ts";\n');
  writeFileSync(join(root, "a/three.ts"), "");
  writeFileSync(join(root, "b/two.ts"), 'export const load = () => import("../a/three.ts");\n');
  expect(folderCycles(root)).toHaveLength(1);
  rmSync(join(root, "b/two.ts"));
  writeFileSync(join(root, "b/two.ts"), "");
  writeFileSync(join(root, "b/two.test.ts"), 'import "../a/three.ts";\n');
  expect(folderCycles(root)).toEqual([]);
});

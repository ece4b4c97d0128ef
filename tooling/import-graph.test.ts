import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";

const repository = join(import.meta.dirname, "..");
let tree: string;

beforeEach(() => {
  tree = mkdtempSync(join(tmpdir(), "skein-imports-"));
  cpSync(join(repository, "tsconfig.base.json"), join(tree, "tsconfig.base.json"));
  cpSync(join(repository, "tsconfig.json"), join(tree, "tsconfig.json"));
});
afterEach(() => rmSync(tree, { recursive: true }));

/** Writes a tree of files, and returns the names of the violated rules. */
const broken = (files: Readonly<Record<string, string>>): string[] => {
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(tree, path)), { recursive: true });
    writeFileSync(join(tree, path), text);
  }
  const cruise = join(repository, "node_modules/.bin/depcruise");
  const options = ["--config", join(repository, "tooling/dependency-cruiser.cjs"), "--output-type", "json", "."];
  const { stdout, stderr } = spawnSync(cruise, options, { cwd: tree, encoding: "utf8", maxBuffer: 2 ** 26 });
  if (!stdout.startsWith("{")) throw new Error(stderr);
  const { summary } = JSON.parse(stdout) as { summary: { violations: { rule: { name: string } }[] } };
  return [...new Set(summary.violations.map(({ rule }) => rule.name))].sort();
};

test("accepts a tree that follows the graph", () => {
  expect(
    broken({
      "packages/tensor-core/src/index.ts": 'export { one } from "./one.ts";\n',
      "packages/tensor-core/src/one.ts": "export const one = 1;\n",
      "packages/data/src/index.ts": "export const two = 2;\n",
      "packages/data/src/node.ts": 'import { sep } from "node:path";\nexport const three = sep;\n',
    }),
  ).toEqual([]);
});

test("rejects an import against the graph", () => {
  const files = {
    "packages/models/src/index.ts": "export const one = 1;\n",
    "packages/tensor-core/src/two.ts": 'export { one } from "../../models/src/index.ts";\n',
  };
  expect(broken(files)).toEqual(["layers:tensor-core", "one-door-by-name"]);
});

test("rejects a cycle of type-only imports", () => {
  const files = {
    "packages/data/src/a.ts": 'import type { B } from "./b.ts";\nexport type A = B | 1;\n',
    "packages/data/src/b.ts": 'import type { A } from "./a.ts";\nexport type B = A | 2;\n',
  };
  expect(broken(files)).toEqual(["no-cycle"]);
});

test("rejects a deep import into another package", () => {
  const files = {
    "packages/tensor-core/src/one.ts": "export const one = 1;\n",
    "packages/models/src/two.ts": 'export { one } from "../../tensor-core/src/one.ts";\n',
  };
  expect(broken(files)).toEqual(["one-door", "one-door-by-name"]);
});

test("rejects a Node import that the browser's entry reaches, at any depth", () => {
  const files = {
    "packages/data/src/index.ts": 'export { one } from "./one.ts";\n',
    "packages/data/src/one.ts": 'import { sep } from "node:path";\nexport const one = sep;\n',
  };
  expect(broken(files)).toEqual(["core-runs-in-a-browser"]);
});

test("rejects a package without a row, and an import of an app", () => {
  const files = {
    "apps/trainer/src/main.ts": "export const one = 1;\n",
    "packages/stranger/src/index.ts": 'export { one } from "../../../apps/trainer/src/main.ts";\n',
  };
  expect(broken(files)).toEqual(["apps-are-the-top", "unknown-package"]);
});

import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { repository } from "./repository.ts";

const pages = globSync(["*.md", "docs/**/*.md", "packages/*/README.md", "apps/*/README.md"], {
  cwd: repository,
}).sort();
const read = (path: string): string => readFileSync(join(repository, path), "utf8");

/** Paths in backticks that start at the repository's root. Capitals stand for a name to choose. */
const pathsIn = (text: string): string[] =>
  [...text.matchAll(/`((?:packages|apps|docs|tooling|benchmarks|examples|\.ci)\/[^`\s]*)`/g)]
    .map((match) => match[1]!)
    .filter((path) => !/[A-Z]{2}|[*<{]/.test(path));

test.each(pages)("every file that %s names exists", (page) => {
  const text = read(page);
  const links = [...text.matchAll(/\]\(([^)#:\s]+)(?:#[^)]*)?\)/g)].map((match) => join(dirname(page), match[1]!));
  expect([...pathsIn(text), ...links].filter((path) => !existsSync(join(repository, path)))).toEqual([]);
});

test("every function that docs/data-flow.md names stands in the file that it names", () => {
  const text = read("docs/data-flow.md");
  const claims = [...text.matchAll(/`((?:packages|apps)\/[^`\s]*\.ts)` \(([^)]*)\)/g)].flatMap(([, path, names]) =>
    [...names!.matchAll(/`([A-Za-z]\w*)`/g)].map((match) => ({ path: path!, name: match[1]! })),
  );
  expect(claims.length).toBeGreaterThan(10);
  expect(
    claims.filter(
      ({ path, name }) => !existsSync(join(repository, path)) || !new RegExp(`\\b${name}\\b`).test(read(path)),
    ),
  ).toEqual([]);
});

test("docs/errors.md lists every error code of the code, with its kind, and no other", () => {
  const sources = globSync(["packages/*/src/**/*.ts", "apps/*/src/**/*.ts"], { cwd: repository }).filter(
    (path) => !path.endsWith(".test.ts"),
  );
  const literal = /(?:super|new SkeinError)\(\s*"(user|environment|invariant)",\s*"([a-z-]+)"/g;
  const union =
    /constructor\(\s*code:\s*(?:\|\s*)?("[a-z-]+"(?:\s*\|\s*"[a-z-]+")*)[^}]*?super\("(user|environment|invariant)", code/g;
  const thrown = sources
    .map(read)
    .flatMap((text) => [
      ...[...text.matchAll(literal)].map(([, kind, code]) => `${code} ${kind}`),
      ...[...text.matchAll(union)].flatMap(([, codes, kind]) =>
        [...codes!.matchAll(/[a-z-]+/g)].map(([code]) => `${code} ${kind}`),
      ),
    ]);
  const listed = [...read("docs/errors.md").matchAll(/^\| `([a-z-]+)` \| (user|environment|invariant) \|/gm)].map(
    (match) => `${match[1]} ${match[2]}`,
  );
  expect(listed.toSorted()).toEqual([...new Set(thrown)].toSorted());
});

test("every error class says its name, which a minifier would shorten", () => {
  const classes = globSync(["packages/*/src/**/*.ts", "apps/*/src/**/*.ts"], { cwd: repository })
    .filter((path) => !path.endsWith(".test.ts"))
    .flatMap((path) => [
      ...read(path).matchAll(
        /class (\w+) extends (\w+Error|Error)\b[^{]*\{((?:\s*\/\/.*)*\s*override name = "(\w+)";)?/g,
      ),
    ])
    // What never leaves our own code is told by its class.
    .filter(([, name, base]) => base !== "Error" || name === "SkeinError");
  expect(classes.length).toBeGreaterThan(40);
  expect(classes.filter(([, name, , , said]) => said !== name).map(([, name]) => name)).toEqual([]);
});

import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { repository } from "./repository.ts";

const columns = 120; // the formatter limits code to the same width

/**
 * Returns the lines of a document without examples. Lines that cannot be broken are replaced by empty lines: table
 * rows, and lines with a single link or code span.
 */
const proseOf = (text: string): readonly string[] =>
  text
    .replaceAll(/^( *)(```|~~~)[^]*?^\1\2 *$/gm, (example) => example.replaceAll(/[^\n]/g, ""))
    .split("\n")
    .map((line) => (/^\s*(\||<|!\[|\(?`[^`]+`[).,:]*$)/.test(line) ? "" : line));

/**
 * Whether a line is a comment that can be wrapped. Table rows, formulas that start with an absolute value, and examples
 * cannot be wrapped.
 */
const isComment = (line: string): boolean =>
  /^\s*(\*|\/\/|\/\*\*)\s+(?!\||\{|@example)/.test(line) && !line.startsWith("**");

test("limits comments to 120 columns", () => {
  const files = globSync("{packages,apps,benchmarks,examples,tooling}/**/*.ts", { cwd: repository }).filter(
    (path) => !/node_modules|\/dist\/|\/generated\//.test(path),
  );
  expect(files.length).toBeGreaterThan(1000);
  const wide = files.flatMap((path) =>
    readFileSync(join(repository, path), "utf8")
      .split("\n")
      .flatMap((line, i) => ([...line].length > columns && isComment(line) ? [`${path}:${i + 1}`] : [])),
  );
  expect(wide).toEqual([]);
});

test("limits documents to 120 columns, except pages written by programs", () => {
  const files = globSync(["*.md", "docs/**/*.md", "{packages,apps,examples}/*/README.md"], { cwd: repository }).filter(
    (path) => !/^docs\/(benchmarks\/\d|job-reference)/.test(path),
  );
  expect(files.length).toBeGreaterThan(25);
  const wide = files.flatMap((path) =>
    proseOf(readFileSync(join(repository, path), "utf8")).flatMap((line, i) =>
      [...line].length > columns ? [`${path}:${i + 1}`] : [],
    ),
  );
  expect(wide).toEqual([]);
});

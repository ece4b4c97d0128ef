import { expect, test } from "vitest";
import ts from "typescript";
import { examplesOf, expectedLines, exportedDeclarations, functionBody, moduleReader } from "./doc-examples.ts";
import { publishedDoors } from "./site/doors.ts";
import { faultOf } from "./stages/doc-examples.ts";

const read = (texts: Readonly<Record<string, string>>) => (path: string) =>
  ts.createSourceFile(path, texts[path]!, ts.ScriptTarget.Latest, true);

test("finds the blocks of @example tags of exports and of their members, with the name of the export", () => {
  const texts = {
    "a/index.ts": 'export { one as uno, Box } from "./one.ts";\n',
    "a/one.ts": [
      "/**",
      " * One.",
      " * @example one() // is not run",
      " * @example",
      " * ```ts",
      " * console.log(uno()); // 1",
      " * ```",
      " * Source: a book.",
      " */",
      "export const one = () => 1;",
      "/** Not exported by the door. @example",
      " * ```ts",
      " * two();",
      " * ```",
      " */",
      "export const two = () => 2;",
      "export class Box {",
      "  /**",
      "   * @example",
      "   * ```ts",
      "   * new Box().open();",
      "   * ```",
      "   */",
      "  open() {}",
      "}",
    ].join("\n"),
  };
  expect(exportedDeclarations("a/index.ts", read(texts)).flatMap(examplesOf)).toEqual([
    { name: "uno", file: "a/one.ts", line: 1, text: "console.log(uno()); // 1\n" },
    { name: "Box", file: "a/one.ts", line: 18, text: "new Box().open();\n" },
  ]);
});

test("imports the exports that an example uses but does not declare, from the first door that has them", () => {
  const doors = new Map([
    ["@skein/a", new Set(["open", "mean"])],
    ["@skein/core", new Set(["mean", "add", "Tensor"])],
  ]);
  const text = [
    'import { join as path, type Stats } from "node:path";',
    "const add = 1;",
    "open(mean, { add }, (x: Tensor) => x.mean);",
  ].join("\n");
  expect(functionBody(text, doors).split("\n")).toEqual([
    'const { open, mean } = await import("@skein/a");',
    'const { join: path } = await import("node:path");',
    "",
    "const add = 1;",
    "",
    "open(mean, { add }, (x: Tensor) => x.mean);",
  ]);
  expect(() => functionBody('import fs from "node:fs";', doors)).toThrow("only names in braces");
});

test("compares printed lines with the comments behind console.log, and reports errors", () => {
  const text = "console.log(1); // 1\nconst x = 2; // not compared\nconsole.log([x]); // [2]\n";
  const example = { name: "one", file: "one.ts", line: 1, text };
  expect(expectedLines(text)).toEqual(["1", "[2]"]);
  expect(faultOf(example, { index: 0, lines: ["1", "[2]"] })).toBeUndefined();
  expect(faultOf(example, { index: 0, lines: ["1", "[3]"] })).toContain("[2]");
  expect(faultOf(example, { index: 0, lines: ["1", "[2]"], error: "Error: no" })).toBe("Error: no");
});

test("every compressor, aggregator, gate, dispatcher, planner and placement of published packages has an example", () => {
  const reader = moduleReader();
  const factory = /(?:Compressor|Aggregator|Gate|Dispatcher)$|^(?:plan|place)[A-Z]/;
  const declarations = publishedDoors()
    .flatMap(({ file }) => exportedDeclarations(file, reader))
    .filter(({ name, node }) => factory.test(name) && ts.isVariableStatement(node));
  expect(declarations.length).toBeGreaterThan(40);
  const without = declarations.filter((declaration) => examplesOf(declaration).length === 0);
  expect(without.map(({ name, file }) => `${file}: ${name}`)).toEqual([]);
});

import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type Check, run } from "../check.ts";
import type { ExampleResult } from "../doc-example-runner.ts";
import {
  type DocExample,
  examplesOf,
  expectedLines,
  exportedDeclarations,
  functionBody,
  moduleReader,
} from "../doc-examples.ts";
import { quickStarts } from "../quick-starts.ts";
import { repository } from "../repository.ts";
import { shadersThatRunOnce } from "../shaders-that-run-once.ts";
import { type Door, publishedDoors } from "../site/doors.ts";
import { missingPart } from "./examples.ts";
import { missingLine } from "./guides.ts";

const core = "@skein/tensor-core";

interface PackageExamples {
  readonly folder: string;
  readonly examples: readonly DocExample[];
  /** Exported names that the package's examples may use without an import, by import path. */
  readonly doors: ReadonlyMap<string, ReadonlySet<string>>;
}

/** Returns the examples of each published package, in the order of its import paths. */
export const packageExamples = (): PackageExamples[] => {
  const read = moduleReader();
  const doors = publishedDoors().map((door) => ({ ...door, declarations: exportedDeclarations(door.file, read) }));
  const names = (of: readonly (Door & { declarations: readonly { readonly name: string }[] })[]) =>
    of.map(({ name, declarations }) => [name, new Set(declarations.map((one) => one.name))] as const);
  return [...new Set(doors.map(({ folder }) => folder))].map((folder) => {
    const own = doors.filter((door) => door.folder === folder);
    const nodes = new Set(own.flatMap(({ declarations }) => declarations.map(({ node }) => node)));
    const byNode = [...nodes].map(
      (node) => own.flatMap(({ declarations }) => declarations).find((declaration) => declaration.node === node)!,
    );
    return {
      folder,
      examples: byNode.flatMap(examplesOf),
      doors: new Map(names([...own, ...doors.filter(({ name }) => name === core)])),
    };
  });
};

/**
 * Returns a description of the problem with a completed example. Undefined: the output matches the comments of the
 * example.
 */
export const faultOf = ({ text }: DocExample, { lines, error }: ExampleResult): string | undefined => {
  if (error !== undefined) return error;
  const missing = missingLine(expectedLines(text).join("\n"), lines.join("\n"));
  return missing === undefined
    ? undefined
    : `the output lacks (in this order) the line\n${missing}\nIt printed:\n${lines.join("\n")}`;
};

const runner = pathToFileURL(join(repository, "tooling/doc-example-runner.ts")).href;

/** Runs all examples of a package in one process, one after the other. */
const runPackage = async (
  { folder, examples, doors }: PackageExamples,
  env: Readonly<Record<string, string>>,
): Promise<Check[]> => {
  const program = [
    `import { runExample } from ${JSON.stringify(runner)};`,
    ...examples.map(({ text }, i) => `await runExample(${i}, async (console) => {\n${functionBody(text, doors)}\n});`),
    "process.exit(0);",
  ].join("\n");
  const { output } = await run(["node", "--input-type=module-typescript"], {
    cwd: join(repository, folder),
    input: program,
    seconds: 120,
    env,
  });
  const results = new Map<number, ExampleResult>();
  for (const line of output.split("\n")) {
    if (!line.startsWith('{"index":')) continue;
    const result = JSON.parse(line) as ExampleResult;
    results.set(result.index, result);
  }
  return examples.map((example, i): Check => {
    const name = `${example.file}:${example.line} example of ${example.name}`;
    const result = results.get(i);
    const detail =
      result === undefined ? `the process ended before this example did\n${output}` : faultOf(example, result);
    if (detail === undefined) return { name, status: "passed" };
    const missing = missingPart.exec(detail);
    return missing === null ? { name, status: "failed", detail } : { name, status: "skipped", detail: missing[0] };
  });
};

/**
 * Runs the `ts` blocks of `@example` tags in the doc comments of all exports. Exports of the package and of
 * `@skein/tensor-core` need no import. A comment behind `console.log(…);` is the expected output line. An `@example`
 * without a fence is not run.
 *
 * @param built Whether the compiled output of other packages may be loaded.
 * @param folders Folders of the packages. Default: all published packages.
 */
export const docExamplesStage = async (built: boolean, folders?: readonly string[]): Promise<Check[]> => {
  const env = { ...shadersThatRunOnce, ...quickStarts(built) };
  const waiting = packageExamples().filter(
    ({ folder, examples }) => examples.length > 0 && (folders?.includes(folder) ?? true),
  );
  const checks: Check[] = [];
  for (const one of waiting) checks.push(...(await runPackage(one, env)));
  return checks;
};

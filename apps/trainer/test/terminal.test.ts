import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ConfigError, describeError, formatError } from "@skein/cli/node";
import { DataError } from "@skein/data";
import { PretrainedError } from "@skein/pretrained";
import { makeProgress } from "@skein/run-files/node";
import { expect, test } from "vitest";
import { MlflowFault } from "../src/log/mlflow-client.ts";

/** Files that write text unescaped, because their text needs no escaping. */
const asItIs: ReadonlySet<string> = new Set([
  "packages/cli/src/console/terminal.ts",
  "apps/trainer/src/main.ts", // runs before other modules are loaded; quotes only paths of this user
  "apps/trainer/src/generate/generate-command.ts", // text of a model, for files and pipes
  "apps/trainer/src/commands/launch-command.ts", // files that can be redirected
]);

test("only one file writes text to the terminal", () => {
  const root = join(import.meta.dirname, "../../..");
  const packages = ["checkpoints", "cli", "launch", "run-files", "watch"].map((name) => `packages/${name}/src`);
  const writing = ["apps/trainer/src", "apps/profiler/src", ...packages]
    .flatMap((place) =>
      readdirSync(join(root, place), { recursive: true, encoding: "utf8" }).map((file) => `${place}/${file}`),
    )
    .filter((file) => file.endsWith(".ts") && !/\.test\.ts$|\/watch\/page\//.test(file) && !asItIs.has(file))
    .filter((file) => /process\.std(out|err)\.write\(|console\.\w+\(/.test(readFileSync(join(root, file), "utf8")));
  expect(writing).toEqual([]);
});

const hostile = "\u001b]0;PWNED\u0007\u001b[31m000\nsecond \u202eline\u009b";
const inLetters = String.raw`\u001b]0;PWNED\u0007\u001b[31m000\nsecond \u202eline\u009b`;

test("notes and errors that quote names are one line, with escape codes in letters", () => {
  let written = "";
  const stream = { write: (text: string) => (written += text) } as unknown as NodeJS.WriteStream;
  makeProgress({ stream, quiet: false }).note(`sample ${hostile} is damaged`);
  expect(written).toBe(`sample ${inLetters} is damaged\n`);
  expect(formatError(describeError(new ConfigError([`a is ${hostile}`, "b is wrong"])))).toBe(
    `a is ${inLetters}\nb is wrong`,
  );
});

test("errors about data, models and servers of others are one line, with escape codes in letters", () => {
  for (const error of [new DataError(hostile), new PretrainedError(hostile), new MlflowFault(hostile, true)])
    expect(error.message).toBe(inLetters);
});

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import { expect, test } from "vitest";
import { makeProgram } from "../src/commands/program.ts";

const repository = fileURLToPath(new URL("../../..", import.meta.url));

/** Returns the example commands of a page or help text as words, without comments and redirections. */
const examplesIn = (text: string): string[][] =>
  [...text.matchAll(/^ *(?:npx )?skein-train (.*)$/gm)]
    .map(([, command]) => command!.replace(/\s+[#>].*$/, ""))
    .filter((command) => !/[<…]/.test(command)) // usage forms, not examples
    .map((command) => [...command.matchAll(/'([^']*)'|"([^"]*)"|(\S+)/g)].map(([, a, b, c]) => (a ?? b ?? c)!));

const withSubcommands = (command: Command): Command[] => [command, ...command.commands.flatMap(withSubcommands)];

/** Returns a program whose commands only parse their arguments. */
const inertProgram = (): Command => {
  const program = makeProgram(() => undefined);
  for (const command of withSubcommands(program)) {
    command.exitOverride().configureOutput({ writeErr: () => undefined, outputError: () => undefined });
    if (command.commands.length === 0) command.action(() => undefined);
  }
  return program;
};

const helpText = (command: Command): string => {
  let text = "";
  command.configureOutput({ writeOut: (part) => void (text += part) }).outputHelp();
  return text;
};

const pages = ["apps/trainer/README.md", "docs/launching.md", "docs/network-emulation.md", "docs/watching.md"];

test.each([
  ...pages.map((page) => [page, readFileSync(join(repository, page), "utf8")] as const),
  [
    "the help of all commands",
    withSubcommands(makeProgram(() => undefined))
      .map(helpText)
      .join("\n"),
  ] as const,
])("the command line accepts the examples of %s", async (_, text) => {
  const examples = examplesIn(text);
  expect(examples.length).toBeGreaterThan(0);
  for (const words of examples)
    await expect(
      inertProgram()
        .parseAsync(words, { from: "user" })
        .then(() => "taken", String),
      words.join(" "),
    ).resolves.toBe("taken");
});

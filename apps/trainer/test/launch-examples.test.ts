import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Command } from "commander";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { addLaunchCommand } from "../src/commands/launch-command.ts";

const repository = fileURLToPath(new URL("../../..", import.meta.url));
const trainer = join(repository, "apps/trainer");

const programWith = (finish: (code: number) => void): Command => {
  const program = new Command("skein-train").option("--json").option("--quiet").exitOverride();
  addLaunchCommand(program, finish);
  return program;
};

/** Returns the example commands in a text, without comments and redirections. */
const examplesIn = (text: string): string[] =>
  [...text.matchAll(/^ *skein-train (launch \S+ --target .*)$/gm)].map(([, command]) =>
    command!.replace(/\s+[#>].*$/, "").replaceAll("apps/trainer/jobs/", "jobs/"),
  );

const helpText = (): string => {
  let text = "";
  const launch = programWith(() => undefined).commands.find((command) => command.name() === "launch")!;
  launch.configureOutput({ writeOut: (part) => void (text += part) });
  launch.outputHelp();
  return text;
};

let bin: string;
beforeAll(() => {
  bin = mkdtempSync(join(tmpdir(), "skein-launch-examples-"));
  writeFileSync(join(bin, "mpirun"), '#!/bin/sh\necho "mpirun (Open MPI) 4.1.4"\n');
  chmodSync(join(bin, "mpirun"), 0o755);
});
afterAll(() => rmSync(bin, { recursive: true }));

test("examples of launch, in its help and in the docs, are accepted unchanged", async () => {
  const texts = [
    helpText(),
    ...["docs/launching.md", "apps/trainer/README.md"].map((page) => readFileSync(join(repository, page), "utf8")),
  ];
  const examples = texts.map(examplesIn);
  expect(examples.map(({ length }) => length)).toEqual([3, 3, 1]);
  const { PATH } = process.env;
  const where = process.cwd();
  vi.spyOn(process.stdout, "write").mockReturnValue(true);
  try {
    process.env["PATH"] = `${bin}${delimiter}${PATH}`;
    process.chdir(trainer);
    for (const example of examples.flat()) {
      let code: number | undefined;
      const args = example.split(" ").filter((word) => word !== "--submit");
      const program = programWith((given) => (code = given));
      await expect(program.parseAsync([...args, "--dry-run"], { from: "user" }), example).resolves.toBe(program);
      expect(code, example).toBe(0);
    }
  } finally {
    process.env["PATH"] = PATH;
    process.chdir(where);
    vi.restoreAllMocks();
  }
});

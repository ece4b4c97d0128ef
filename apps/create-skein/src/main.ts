import { Argument, Command, CommanderError, Option } from "commander";
import packageJson from "../package.json" with { type: "json" };
import { askFolder, askTemplate, Cancelled, type Terminal } from "./ask.ts";
import { CreateError } from "./errors.ts";
import { managerOf, nextCommands } from "./package-managers.ts";
import { nameFault, projectName } from "./project-name.ts";
import { defaultTemplate, type Template, templateNames, templates } from "./templates.ts";
import { folderState, writeProject } from "./write-project.ts";

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const warn = (line: string): void => void process.stderr.write(`${line}\n`);

const example = "npm create skein@latest my-run -- --template own";

/** Exit codes, equal to those of `skein-train` (docs/errors.md). */
const exitCodes = { ok: 0, failure: 1, usage: 2, interrupted: 130 } as const;

/** Returns the reason why a folder cannot be used, in one line. Undefined if the folder can be used. */
const faultOf = (folder: string): string | undefined => {
  try {
    folderState(folder);
    return nameFault(projectName(folder));
  } catch (error) {
    if (error instanceof CreateError) return error.message;
    throw error;
  }
};

/** Runs synchronous `work`. SIGINT, SIGTERM and SIGHUP do not end the process before `work` returns. */
const undisturbed = (work: () => void): void => {
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
  const wait = (): void => undefined;
  for (const signal of signals) process.on(signal, wait);
  try {
    work();
  } finally {
    for (const signal of signals) process.off(signal, wait);
  }
};

const folderOf = async (asked: string | undefined, terminal: Terminal | undefined): Promise<string> => {
  if (asked === undefined && terminal !== undefined) return askFolder(faultOf, terminal);
  const fault = asked === undefined || asked === "" ? `which folder? Name one: ${example}` : faultOf(asked);
  if (fault !== undefined) throw new CreateError(fault);
  return asked!;
};

const templateOf = async (asked: Template | undefined, terminal: Terminal | undefined): Promise<Template> => {
  if (asked !== undefined) return asked;
  if (terminal !== undefined) return askTemplate(terminal);
  const others = templateNames.filter((each) => each !== defaultTemplate);
  warn(
    `no --template was given and there is no terminal to ask on: using ${defaultTemplate}; the other templates are ${others.join(", ")}`,
  );
  return defaultTemplate;
};

const create = async (
  asked: string | undefined,
  named: Template | undefined,
  options: { readonly template?: Template },
): Promise<void> => {
  const { stdin: input, stdout: output } = process;
  // Some programs create terminals with 0 columns for their child processes. Such a terminal would show one letter per
  // line.
  const terminal = input.isTTY && output.isTTY && output.columns > 0 ? { input, output } : undefined;
  const folder = await folderOf(asked, terminal);
  const template = await templateOf(options.template ?? named, terminal);
  const name = projectName(folder);
  const manager = managerOf(process.env["npm_config_user_agent"]);
  undisturbed(() => writeProject(folder, { name, template, manager }));
  const [install, start] = nextCommands(folder, manager);
  say(`${name} is ready: ${templates[template].summary}`);
  say("Next steps (README.md lists more):");
  say(`  ${install}`);
  say(`  ${start}`);
};

const main = async (words: readonly string[]): Promise<number> => {
  try {
    await new Command("create-skein")
      .description("Start a Skein project in a new folder.")
      .argument("[folder]", "folder to create; the project gets its name")
      .addArgument(
        new Argument(
          "[template]",
          "same as --template; npm drops the flag and keeps its value unless -- precedes it",
        ).choices(templateNames),
      )
      .addOption(new Option("--template <name>", "template to start from").choices(templateNames))
      .addHelpText(
        "after",
        `\nTemplates:\n${templateNames.map((name) => `  ${name.padEnd(8)}${templates[name].summary}`).join("\n")}\n\nExample:\n  ${example}`,
      )
      .version(packageJson.version, "--version", "print the version")
      .configureOutput({ outputError: (text, write) => write(`${text.trim().replaceAll("\n", " ")}\n`) })
      .exitOverride()
      .action(create)
      .parseAsync(words, { from: "user" });
    return exitCodes.ok;
  } catch (error) {
    // commander has already printed the reason
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    if (error instanceof Cancelled) {
      warn("nothing was written");
      return exitCodes.interrupted;
    }
    if (!(error instanceof CreateError)) throw error;
    warn(error.message);
    return exitCodes.usage;
  }
};

// If a reader closes the pipe after the first lines, the project is still created.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
}

// Some package managers pass a lone "--" before the options.
process.exitCode = await main(process.argv.slice(2).filter((word) => word !== "--"));

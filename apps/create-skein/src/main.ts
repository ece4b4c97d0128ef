import { Argument, Command, CommanderError, Option } from "commander";
import packageJson from "../package.json" with { type: "json" };
import { askFolder, askTemplate, Cancelled, type Terminal } from "./ask.ts";
import { CreateError } from "./errors.ts";
import { managerOf, nextCommands } from "./package-managers.ts";
import { nameFault, projectName } from "./project-name.ts";
import { defaultTemplate, type Template, templateNames, templates } from "./templates.ts";
import { placeFor, writeProject } from "./write-project.ts";

const say = (line: string): void => void process.stdout.write(`${line}\n`);
const warn = (line: string): void => void process.stderr.write(`${line}\n`);

const example = "npm create skein@latest my-run -- --template own";

/** As `skein-train` has them: docs/errors.md. */
const exitCodes = { ok: 0, failure: 1, usage: 2, interrupted: 130 } as const;

/** Why a folder cannot be taken, in one line. */
const faultOf = (folder: string): string | undefined => {
  try {
    placeFor(folder);
    return nameFault(projectName(folder));
  } catch (error) {
    if (error instanceof CreateError) return error.message;
    throw error;
  }
};

/** Do something whole: signals wait until it is done. */
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
  warn(`no --template was given and nobody can be asked: taking ${defaultTemplate}; others are ${others.join(", ")}`);
  return defaultTemplate;
};

const create = async (
  asked: string | undefined,
  named: Template | undefined,
  options: { readonly template?: Template },
): Promise<void> => {
  const { stdin: input, stdout: output } = process;
  // One without columns, as some programs open it for others, shows a letter a line.
  const terminal = input.isTTY && output.isTTY && output.columns > 0 ? { input, output } : undefined;
  const folder = await folderOf(asked, terminal);
  const template = await templateOf(options.template ?? named, terminal);
  const name = projectName(folder);
  const manager = managerOf(process.env["npm_config_user_agent"]);
  undisturbed(() => writeProject(folder, { name, template, manager }));
  const [install, start] = nextCommands(folder, manager);
  say(`${name} is ready: ${templates[template].what}`);
  say("Next, and README.md says what else:");
  say(`  ${install}`);
  say(`  ${start}`);
};

const main = async (words: readonly string[]): Promise<number> => {
  try {
    await new Command("create-skein")
      .description("Start a Skein project in a new folder.")
      .argument("[folder]", "where it goes; its name becomes that of the project")
      .addArgument(
        new Argument("[template]", "as --template, of which npm leaves only its value unless -- is before it").choices(
          templateNames,
        ),
      )
      .addOption(new Option("--template <name>", "what it begins with").choices(templateNames))
      .addHelpText(
        "after",
        `\nTemplates:\n${templateNames.map((name) => `  ${name.padEnd(8)}${templates[name].what}`).join("\n")}\n\nExample:\n  ${example}`,
      )
      .version(packageJson.version, "--version", "print the version")
      .configureOutput({ outputError: (text, write) => write(`${text.trim().replaceAll("\n", " ")}\n`) })
      .exitOverride()
      .action(create)
      .parseAsync(words, { from: "user" });
    return exitCodes.ok;
  } catch (error) {
    // commander has said why
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

// Whoever read the first lines and went has the project all the same.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
}

// A lone "--" is what some package managers leave in front of the options.
process.exitCode = await main(process.argv.slice(2).filter((word) => word !== "--"));

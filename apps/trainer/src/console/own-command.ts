import { existsSync, realpathSync } from "node:fs";
import { basename, delimiter, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { shellCommand, shellQuote } from "./shell-quote.ts";

/** What tells how a person has started this program. */
export interface Surroundings {
  /** The script that Node was given. */
  readonly program: string;
  /** The executable of Node, and the options that it was given. */
  readonly node: string;
  readonly nodeOptions: readonly string[];
  /** The working folder of this process. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  exists(path: string): boolean;
  /** A path without links in it; itself where there is nothing. */
  real(path: string): string;
}

/** A path as people may type it: relative where that is shorter than climbing up. */
const shortPath = (path: string, folder: string): string => {
  const short = relative(folder, path);
  return short === "" || short.startsWith("../../../..") ? path : short;
};

/** Folders of PATH as the person's shell has it: package managers put their own before those. */
const pathFolders = ({ PATH, npm_config_user_agent }: Surroundings["env"]): string[] =>
  (PATH ?? "")
    .split(delimiter)
    .filter(
      (folder) =>
        folder !== "" && (npm_config_user_agent === undefined || !/[\\/]node_modules[\\/]\.bin$/.test(folder)),
    );

/** Whether a project that holds `folder` has a program among its own. */
const isInstalledAbove = (name: string, folder: string, exists: Surroundings["exists"]): boolean =>
  exists(join(folder, "node_modules/.bin", name)) ||
  (dirname(folder) !== folder && isInstalledAbove(name, dirname(folder), exists));

/** `npx skein-train` and the like, where a package manager has started this process and would do so again. */
const packageManagerCommand = (name: string, { folder, env, exists, real }: Surroundings): string | undefined => {
  const [, manager, version] = /^(npm|pnpm|yarn|bun)\/(\S+)/.exec(env["npm_config_user_agent"] ?? "") ?? [];
  if (manager === undefined || (manager !== "npm" && !isInstalledAbove(name, folder, exists))) return undefined;
  // Scripts and `--filter` run in the package's folder, wherever the person is.
  const startedIn = env["INIT_CWD"];
  const elsewhere = startedIn !== undefined && real(startedIn) !== real(folder);
  if (manager === "pnpm") {
    const pnpm = /[\\/]_npx[\\/]/.test(env["npm_execpath"] ?? "") ? `npx --yes pnpm@${version}` : "pnpm";
    return `${pnpm}${elsewhere ? ` -C ${shellQuote(shortPath(folder, startedIn))}` : ""} exec ${name}`;
  }
  const runner = { npm: "npx", yarn: "yarn", bun: "bunx" }[manager as "npm" | "yarn" | "bun"];
  return `${elsewhere ? `cd ${shellQuote(shortPath(folder, startedIn))} && ` : ""}${runner} ${name}`;
};

/**
 * The words that start this program once more when they are pasted: `npx skein-train`, `pnpm exec skein-train`,
 * `skein-train` where that is on PATH, else Node and the path of the script, which always works.
 *
 * @param name of the program, whose launcher is called so too.
 */
export const ownCommand = (surroundings: Surroundings, name = "skein-train"): string => {
  const { program, node, nodeOptions, folder, env, exists, real } = surroundings;
  const folders = pathFolders(env);
  if (basename(real(program)) === `${name}.js`) {
    const managed = packageManagerCommand(name, surroundings);
    if (managed !== undefined) return managed;
    if (folders.some((candidate) => exists(join(candidate, name)))) return name;
  }
  const first = folders.map((candidate) => join(candidate, "node")).find(exists);
  const start = first !== undefined && real(first) === real(node) ? "node" : shellQuote(node);
  return `${start} ${shellCommand([...nodeOptions, shortPath(resolve(folder, program), folder)])}`;
};

const real = (path: string): string => {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
};

/** How the person at the keyboard would start a program of ours by its script. */
const typedCommand = (name = "skein-train", program = process.argv[1] ?? name): string =>
  ownCommand(
    {
      program,
      node: process.execPath,
      nodeOptions: process.execArgv,
      folder: process.cwd(),
      env: process.env,
      exists: existsSync,
      real,
    },
    name,
  );

/** Commands of a program in a text: its name where a word of `commands` follows. */
const commandsIn = (name: string, commands: string): RegExp =>
  new RegExp(`(?<![\\w./-])${name} (?=(?:${commands})\\b)`, "g");

const anyCommand = commandsIn(
  "skein-train",
  "run|resume|sweep|find-batch|find-rate|report|log|runs|watch|evaluate|generate|import|export|validate|doctor|links|certs|launch|mpi|blas|tokenizer|schema",
);

const withCommands = (text: string, pattern: RegExp, command: () => string): string =>
  text.search(pattern) < 0 ? text : text.replaceAll(pattern, () => `${command()} `);

/**
 * Messages say `skein-train resume …`, also those of packages that cannot know how they were started. Where people read
 * them, the words that they typed take its place.
 */
export const asTyped = (text: string, command: () => string = typedCommand): string =>
  withCommands(text, anyCommand, command);

/**
 * The same in another program of ours: its own commands, and those of skein-train, as each would be started there.
 *
 * @param commands their names.
 */
export const asTypedIn = (name: string, commands: readonly string[], text: string): string =>
  asTyped(
    withCommands(text, commandsIn(name, commands.join("|")), () => typedCommand(name)),
    () => typedCommand("skein-train", fileURLToPath(new URL("../../bin/skein-train.js", import.meta.url))),
  );

/** What goes on with a run. */
export const resumeLine = (output: string): string => `skein-train resume ${shellQuote(output)}`;

/** What makes a page of a run. */
export const reportLine = (output: string): string => `skein-train report ${shellQuote(output)}`;

/** A job file that comes with this package, as a path from here. */
export const sampleJob = (): string =>
  shellQuote(shortPath(fileURLToPath(new URL("../../jobs/mnist.yaml", import.meta.url)), process.cwd()));

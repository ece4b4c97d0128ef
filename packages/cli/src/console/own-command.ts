import { existsSync, realpathSync } from "node:fs";
import { basename, delimiter, dirname, join, relative, resolve } from "node:path";
import { shellCommand, shellQuote } from "./shell-quote.ts";

/** Properties of this process from which the command that started this program is reconstructed. */
export interface Surroundings {
  /** Path of the script that Node runs. */
  readonly program: string;
  /** Path of the Node executable. */
  readonly node: string;
  /** Options passed to Node, such as `--conditions`. */
  readonly nodeOptions: readonly string[];
  /** Working directory of this process. */
  readonly folder: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  exists(path: string): boolean;
  /** Returns a path with symbolic links resolved; returns the path unchanged if nothing exists there. */
  real(path: string): string;
}

/** Shortens a path for display: returns the relative path, unless it goes up more than three levels. */
export const shortPath = (path: string, folder: string): string => {
  const short = relative(folder, path);
  return short === "" || short.startsWith("../../..") ? path : short;
};

/** Returns the folders of PATH as in the user's shell, without the folders that package managers put in front. */
const pathFolders = ({ PATH, npm_config_user_agent }: Surroundings["env"]): string[] =>
  (PATH ?? "")
    .split(delimiter)
    .filter(
      (folder) =>
        folder !== "" && (npm_config_user_agent === undefined || !/[\\/]node_modules[\\/]\.bin$/.test(folder)),
    );

/** Whether the program is installed in a project that contains `folder`. */
const isInstalledAbove = (name: string, folder: string, exists: Surroundings["exists"]): boolean =>
  exists(join(folder, "node_modules/.bin", name)) ||
  (dirname(folder) !== folder && isInstalledAbove(name, dirname(folder), exists));

/**
 * Returns the package-manager command that started this process and can start it again, such as `npx skein-train`;
 * undefined if there is none.
 */
const packageManagerCommand = (name: string, { folder, env, exists, real }: Surroundings): string | undefined => {
  const [, manager, version] = /^(npm|pnpm|yarn|bun)\/(\S+)/.exec(env["npm_config_user_agent"] ?? "") ?? [];
  if (manager === undefined || (manager !== "npm" && !isInstalledAbove(name, folder, exists))) return undefined;
  // Scripts and `--filter` run in the package's folder, not in the user's working directory.
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
 * Returns the command that starts this program again when pasted into a shell: `npx skein-train`,
 * `pnpm exec skein-train`, or `skein-train` if it is on PATH. If none of these works, returns Node with the path of the
 * script, which always works.
 *
 * @param name program name, which is also the name of its launcher.
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

/** Returns the command with which the user would start one of our programs, given the program's script. */
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

/**
 * Returns a pattern that matches commands of a program in a text: the program name, followed by one of the words of
 * `commands`.
 */
const commandsIn = (name: string, commands: string): RegExp =>
  new RegExp(`(?<![\\w./-])${name} (?=(?:${commands})\\b)`, "g");

const anyCommand = commandsIn(
  "skein-train",
  "run|resume|sweep|find-batch|find-rate|report|log|runs|watch|evaluate|generate|import|export|validate|doctor|links|certs|launch|mpi|blas|tokenizer|schema",
);

const withCommands = (text: string, pattern: RegExp, command: () => string): string =>
  text.search(pattern) < 0 ? text : text.replaceAll(pattern, () => `${command()} `);

/**
 * Replaces `skein-train` in commands such as `skein-train resume …` by the command with which the user started this
 * program. Needed for messages of packages that do not know this command.
 */
export const asTyped = (text: string, command: () => string = typedCommand): string =>
  withCommands(text, anyCommand, command);

/**
 * Replaces commands in a message that another Skein program, such as skein-profile, prints. Commands of that program
 * are replaced by the command with which the user started the program. Commands of skein-train are replaced, as in
 * `asTyped`, by the command that starts skein-train on this machine.
 *
 * @param commands names of the program's own commands.
 * @param trainer path of the script of skein-train.
 */
export const asTypedIn = (name: string, commands: readonly string[], trainer: string, text: string): string =>
  asTyped(
    withCommands(text, commandsIn(name, commands.join("|")), () => typedCommand(name)),
    () => typedCommand("skein-train", trainer),
  );

/** Returns the command that resumes a run. */
export const resumeLine = (output: string): string => `skein-train resume ${shellQuote(output)}`;

/** Returns the command that writes a report page of a run. */
export const reportLine = (output: string): string => `skein-train report ${shellQuote(output)}`;

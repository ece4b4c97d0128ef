import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { asTypedIn, shellQuote, shortPath } from "@skein/cli/node";

/** Returns the folder of this package, for code that runs from sources or from the build. */
const packageFolder = (): string => dirname(createRequire(import.meta.url).resolve("skein-train/package.json"));

/**
 * Returns the path of a sample job file in this package, relative to the working directory if the relative path is
 * shorter.
 */
export const sampleJob = (): string => shellQuote(shortPath(join(packageFolder(), "jobs/mnist.yaml"), process.cwd()));

/**
 * Replaces commands in a message by the commands that the user would type. The message is from another program, which
 * uses this package.
 *
 * @param name name of the other program.
 * @param commands names of the other program's commands.
 */
export const asTypedInProgram = (name: string, commands: readonly string[], text: string): string =>
  asTypedIn(name, commands, join(packageFolder(), "bin/skein-train.js"), text);

import type { Command } from "commander";

/**
 * Returns a commander action for a command with one argument. The action calls `run` with the argument and the options
 * of the command and of the program, and passes the exit code to `finish`.
 */
export const commandAction =
  <Argument extends string | undefined, Options extends object>(
    finish: (code: number) => void,
    run: (argument: Argument, options: Options) => number | Promise<number>,
  ): ((argument: Argument, own: unknown, command: Command) => Promise<void>) =>
  async (argument, _, command) =>
    finish(await run(argument, command.optsWithGlobals<Options>()));

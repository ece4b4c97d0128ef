import type { Command } from "commander";

/**
 * Action of a command with one argument, for commander: calls `run` with the options of the command and of the program,
 * and passes its exit code to `finish`.
 */
export const commandAction =
  <Argument extends string | undefined, Options extends object>(
    finish: (code: number) => void,
    run: (argument: Argument, options: Options) => number | Promise<number>,
  ): ((argument: Argument, own: unknown, command: Command) => Promise<void>) =>
  async (argument, _, command) =>
    finish(await run(argument, command.optsWithGlobals<Options>()));

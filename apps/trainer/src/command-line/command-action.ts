import type { Command } from "commander";

/**
 * What commander calls for a command with one argument: run it with its options and those of the program, and hand its
 * exit code to `finish`.
 */
export const commandAction =
  <Argument extends string | undefined, Options extends object>(
    finish: (code: number) => void,
    run: (argument: Argument, options: Options) => number | Promise<number>,
  ): ((argument: Argument, own: unknown, command: Command) => Promise<void>) =>
  async (argument, _, command) =>
    finish(await run(argument, command.optsWithGlobals<Options>()));

import { describeError, exitCodeOf, exitCodes, formatError } from "@skein/cli/node";
import { Command, CommanderError } from "commander";
import { addLaunchCommand } from "../src/commands/launch-command.ts";

/** Runs only `skein-train launch`, as a process that tests can signal. */
const program = new Command("skein-train").option("--json").option("--quiet").exitOverride();
addLaunchCommand(program, (code) => {
  process.exitCode = code;
});
try {
  await program.parseAsync(process.argv.slice(2), { from: "user" });
} catch (error) {
  if (!(error instanceof CommanderError)) process.stderr.write(`${formatError(describeError(error))}\n`);
  process.exitCode = error instanceof CommanderError ? exitCodes.usage : exitCodeOf(describeError(error));
}

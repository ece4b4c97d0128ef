import { describeError, exitCodeOf, exitCodes, formatError, surviveLostOutput, writeStderr } from "@skein/cli/node";
import { CommanderError } from "commander";
import { makeProgram } from "./program.ts";

const main = async (args: readonly string[]): Promise<number> => {
  let code: number = exitCodes.usage;
  try {
    await makeProgram((result) => {
      code = result;
    }).parseAsync(args, { from: "user" });
    return code;
  } catch (error) {
    // commander has already printed the error
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    const report = describeError(error);
    writeStderr(`${formatError(report)}\n`);
    // A callback that never returns, for example because a server does not respond, would keep this process alive.
    if (report.code === "callback") process.exit(exitCodeOf(report));
    return exitCodeOf(report);
  }
};

surviveLostOutput(exitCodes.failure);

/** Handles errors that have no other handler, such as a failed start of a package's thread. */
process.once("uncaughtException", (error) => {
  const report = describeError(error);
  writeStderr(`${formatError(report)}\n`);
  process.exit(exitCodeOf(report));
});

// `pnpm start -- --json` passes a lone "--" before the options.
process.exitCode = await main(process.argv.slice(2).filter((argument) => argument !== "--"));

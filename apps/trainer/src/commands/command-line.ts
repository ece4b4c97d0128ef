import { CommanderError } from "commander";
import { describeError, exitCodeOf, exitCodes, formatError } from "../errors.ts";
import { writeStderr } from "../console/terminal.ts";
import { surviveLostOutput } from "../processes/lost-output.ts";
import { makeProgram } from "./program.ts";

const main = async (args: readonly string[]): Promise<number> => {
  let code: number = exitCodes.usage;
  try {
    await makeProgram((result) => {
      code = result;
    }).parseAsync(args, { from: "user" });
    return code;
  } catch (error) {
    // commander has said why
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    const report = describeError(error);
    writeStderr(`${formatError(report)}\n`);
    // What it waits for, such as a server that never answers, would keep this process for as long.
    if (report.code === "callback") process.exit(exitCodeOf(report));
    return exitCodeOf(report);
  }
};

surviveLostOutput(exitCodes.failure);

/** What nobody has waited for, such as a thread of a package that could not be started. */
process.once("uncaughtException", (error) => {
  const report = describeError(error);
  writeStderr(`${formatError(report)}\n`);
  process.exit(exitCodeOf(report));
});

// A lone "--" is what `pnpm start -- --json` leaves in front of the options.
process.exitCode = await main(process.argv.slice(2).filter((argument) => argument !== "--"));

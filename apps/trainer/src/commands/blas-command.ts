import { buildBlas, turnsText } from "@skein/blas/node";
import type { Command } from "commander";
import { exitCodes } from "../errors.ts";
import { writeStdout } from "../console/terminal.ts";

interface BuildCommandOptions {
  readonly compiler?: string;
  readonly library?: string;
  readonly output?: string;
  readonly json?: boolean;
}

/** Add `blas build` to the command line. `finish` takes the exit code. */
export const addBlasCommand = (program: Command, finish: (code: number) => void): void => {
  program
    .command("blas")
    .description("make ready for products by OpenBLAS, BLIS or MKL on the CPU")
    .command("build")
    .description(
      "build the addon for this machine's BLAS and measure which shapes are faster by it; takes some 20 s on an idle core, needs a C++ compiler",
    )
    .option(
      "--library <name>",
      "the BLAS, as the loader finds it: a name or a path; default: the first of OpenBLAS, MKL and BLIS that is installed",
    )
    .option("--compiler <command>", "C++ compiler; default: $CXX, else g++")
    .option(
      "--output <folder>",
      "where to write it, for runs with SKEIN_BLAS=<folder>; default: your cache, where runs look by themselves",
    )
    .option("--json", "print the result as JSON")
    .addHelpText(
      "after",
      "\nExamples:\n  skein-train blas build\n  skein-train blas build --library libblis.so.4\n  skein-train blas build --output /shared/skein-blas   # one table for hosts of one kind",
    )
    .action(async ({ json, ...options }: BuildCommandOptions) => {
      const built = await buildBlas(options);
      writeStdout(
        json === true
          ? `${JSON.stringify(built)}\n`
          : `${built.addon}\n${built.library} is faster for ${built.faster} of ${built.measured} measured shapes; jobs use it for those unless they say blas: off.${built.concurrent ? "" : ` It is ${turnsText}.`}\n`,
      );
      finish(exitCodes.ok);
    });
};

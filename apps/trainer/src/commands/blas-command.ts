import { buildBlas, noLocksAdvice } from "@skein/blas/node";
import { exitCodes, writeStdout } from "@skein/cli/node";
import type { Command } from "commander";

interface BuildCommandOptions {
  readonly compiler?: string;
  readonly library?: string;
  readonly output?: string;
  readonly json?: boolean;
}

/** Adds `blas build` to the command line. `finish` receives the exit code. */
export const addBlasCommand = (program: Command, finish: (code: number) => void): void => {
  program
    .command("blas")
    .description("set up matrix products by OpenBLAS, BLIS or MKL on the CPU")
    .command("build")
    .description(
      "build the addon for this machine's BLAS, and measure for which shapes it is faster; takes about 20 s on an idle core, needs a C++ compiler",
    )
    .option(
      "--library <name>",
      "BLAS library, a name or path for the dynamic loader; default: the first installed of OpenBLAS, MKL and BLIS",
    )
    .option("--compiler <command>", "C++ compiler; default: $CXX, otherwise g++")
    .option(
      "--output <folder>",
      "output folder, for runs with SKEIN_BLAS=<folder>; default: your cache folder, which runs search by default",
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
          : `${built.addon}\n${built.library} is faster for ${built.faster} of ${built.measured} measured shapes; jobs use it for these shapes unless they set blas: off.${built.concurrent ? "" : ` It is ${noLocksAdvice}.`}\n`,
      );
      finish(exitCodes.ok);
    });
};

import { exitCodes, requireNewFile, writeStdout } from "@skein/cli/node";
import { buildMpiAddon } from "@skein/mpi/node";
import type { Command } from "commander";

interface BuildCommandOptions {
  readonly compiler?: string;
  readonly output?: string;
  readonly json?: boolean;
}

/** Adds `mpi build` to the command line. `finish` receives the exit code. */
export const addMpiCommand = (program: Command, finish: (code: number) => void): void => {
  program
    .command("mpi")
    .description("prepare for transport: mpi")
    .command("build")
    .description(
      "build the addon for this machine's MPI (Open MPI or MPICH); takes about 10 s and needs a C++ compiler",
    )
    .option("--compiler <command>", "the MPI library's C++ compiler; default: $MPICXX, or mpicxx")
    .option(
      "--output <file>",
      "output file, for ranks with SKEIN_MPI_ADDON=<file>; default: your cache, where ranks find it by themselves",
    )
    .option("--json", "print the result as JSON")
    .addHelpText(
      "after",
      "\nExamples:\n  skein-train mpi build\n  skein-train mpi build --compiler mpicxx.mpich\n  skein-train mpi build --output /shared/skein-mpi.node   # for hosts that do not share your home",
    )
    .action(async ({ compiler, output, json }: BuildCommandOptions) => {
      if (output !== undefined) requireNewFile(output, "--output");
      const built = await buildMpiAddon({
        ...(compiler !== undefined && { compiler }),
        ...(output !== undefined && { output }),
      });
      writeStdout(
        json === true
          ? `${JSON.stringify(built)}\n`
          : `${built.file}\nBuilt for ${built.family} ${built.version}; start ranks with that library's mpirun or srun.\n`,
      );
      finish(exitCodes.ok);
    });
};

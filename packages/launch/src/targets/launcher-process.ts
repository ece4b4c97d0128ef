import { execFile, spawn } from "node:child_process";
import { constants } from "node:os";
import type { Writable } from "node:stream";
import { launcherVariables } from "@skein/cli/node";
import { LaunchError } from "./errors.ts";
import type { Submission } from "./launch-target.ts";
import type { Attempt } from "./supervise.ts";

const cures: Readonly<Record<string, string>> = {
  mpirun: "install Open MPI or MPICH (Debian: openmpi-bin), or use --transport tcp",
  sbatch: "run this on a login node of the cluster, or use --dry-run and submit the script yourself",
  kubectl: "install it and configure it for the cluster, or use --dry-run and submit the files yourself",
};

const explain = (program: string, error: unknown): LaunchError => {
  const { code, message } = error as NodeJS.ErrnoException;
  const cure = cures[program] ?? "check PATH";
  return new LaunchError(
    code === "ENOENT" ? `${program} is not on PATH; ${cure}` : `${program} cannot be started (${message}); ${cure}`,
    {
      cause: error,
    },
  );
};

/** Returns the output of `program --version`. @throws LaunchError if the program cannot be started. */
export const versionText = (program: string): Promise<string> =>
  new Promise((resolve, reject) => {
    execFile(program, ["--version"], { timeout: 30_000 }, (error, stdout, stderr) => {
      if (error !== null && typeof error.code !== "number") reject(explain(program, error));
      else resolve(`${stdout}${stderr}`);
    });
  });

/** Passes files to the submission command of a cluster. @throws LaunchError if the command is missing or fails. */
export const submit = ({ command, input }: Submission): Promise<void> =>
  new Promise((resolve, reject) => {
    const [program, ...args] = command as [string, ...string[]];
    const child = spawn(program, args, { stdio: ["pipe", "inherit", "inherit"] });
    child.once("error", (error) => reject(explain(program, error)));
    const stdin = child.stdin as Writable | null | undefined; // absent if no file handle was free
    stdin?.on("error", () => {}); // the command failed before it had read all input; its exit code is reported
    stdin?.end(input);
    child.once("close", (code, signal) => {
      if (code === 0) resolve();
      else
        reject(
          new LaunchError(
            `${command.join(" ")} ended with ${signal ?? `code ${code}`}; its output shows the reason; correct that, and submit again`,
          ),
        );
    });
  });

/**
 * Returns the exit status of a process as shells report it: its exit code, or 128 plus the number of the signal that
 * killed it.
 */
const shellCode = (code: number | null, signal: NodeJS.Signals | null): number =>
  code ?? 128 + constants.signals[signal!];

/** Signals for ranks, or for the launcher that forwards signals to ranks. */
export interface AttemptSignals {
  /** Signal that asks ranks to save and stop. */
  readonly stop: NodeJS.Signals;
  /** Signal that ends ranks immediately, if they were already asked to stop. */
  readonly end: NodeJS.Signals;
}

/**
 * Starts a command that runs ranks. The command runs in a separate process group, so that Ctrl-C reaches only this
 * process, which then decides how to stop the ranks. If this process exits first, it terminates the command. If this
 * process is killed, the command detects the loss of its launcher.
 */
export const startAttempt = (
  command: readonly string[],
  env: NodeJS.ProcessEnv,
  { stop, end }: AttemptSignals,
): Attempt => {
  const [program, ...args] = command as [string, ...string[]];
  const child = spawn(program, args, {
    stdio: ["ignore", "inherit", "inherit"],
    env: { ...env, ...launcherVariables() },
    detached: true,
  });
  const terminate = (): void => void child.kill(end);
  process.once("exit", terminate);
  const ended = new Promise<number>((resolve, reject) => {
    child.once("error", (error) => reject(explain(program, error)));
    child.once("close", (code, signal) => resolve(shellCode(code, signal)));
  }).finally(() => process.off("exit", terminate));
  return { ended, stop: () => void child.kill(stop) };
};

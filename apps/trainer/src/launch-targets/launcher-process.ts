import { execFile, spawn } from "node:child_process";
import { constants } from "node:os";
import type { Writable } from "node:stream";
import { launcherVariables } from "../processes/launcher-watch.ts";
import { LaunchError } from "./errors.ts";
import type { Submission } from "./launch-target.ts";
import type { Attempt } from "./supervise.ts";

const cures: Readonly<Record<string, string>> = {
  mpirun: "install Open MPI or MPICH (Debian: openmpi-bin), or use --transport tcp",
  sbatch: "run this on a login node of the cluster, or use --dry-run and hand the script over yourself",
  kubectl: "install it and point it at the cluster, or use --dry-run and hand the files over yourself",
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

/** What `program --version` prints. @throws LaunchError when it cannot be started. */
export const versionText = (program: string): Promise<string> =>
  new Promise((resolve, reject) => {
    execFile(program, ["--version"], { timeout: 30_000 }, (error, stdout, stderr) => {
      if (error !== null && typeof error.code !== "number") reject(explain(program, error));
      else resolve(`${stdout}${stderr}`);
    });
  });

/** Hand files to a cluster's own command. @throws LaunchError when it is missing or refuses. */
export const submit = ({ command, input }: Submission): Promise<void> =>
  new Promise((resolve, reject) => {
    const [program, ...args] = command as [string, ...string[]];
    const child = spawn(program, args, { stdio: ["pipe", "inherit", "inherit"] });
    child.once("error", (error) => reject(explain(program, error)));
    const stdin = child.stdin as Writable | null | undefined; // there is none without file handles for it
    stdin?.on("error", () => {}); // it refused before it had read all; its exit code tells
    stdin?.end(input);
    child.once("close", (code, signal) => {
      if (code === 0) resolve();
      else
        reject(
          new LaunchError(
            `${command.join(" ")} ended with ${signal ?? `code ${code}`}; what it printed says why; correct that, and submit again`,
          ),
        );
    });
  });

/** How a process ended, as shells tell it: its code, or 128 plus the signal that killed it. */
const shellCode = (code: number | null, signal: NodeJS.Signals | null): number =>
  code ?? 128 + constants.signals[signal!];

/** What ranks, or the launcher that passes signals on to them, are sent. */
export interface AttemptSignals {
  /** Asks to save and stop. */
  readonly stop: NodeJS.Signals;
  /** Ends them at once, if they were asked to stop before. */
  readonly end: NodeJS.Signals;
}

/**
 * Start a command that runs ranks. It gets a process group of its own, so that a Ctrl-C reaches us alone and we decide
 * how the ranks are told. Should we have to go first, it is ended; should we be killed, it sees that by itself.
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

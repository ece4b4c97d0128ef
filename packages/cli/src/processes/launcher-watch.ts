import { hostname } from "node:os";
import { isRunning } from "./process-status.ts";

/** Environment variable with the process id and host of `skein-train launch`: `<pid>@<host>`. */
const launcherVariable = "SKEIN_LAUNCHER";

const pollIntervalMilliseconds = 500;

/** Returns the environment variables that a launcher sets for its child processes. */
export const launcherVariables = (): Readonly<Record<string, string>> => ({
  [launcherVariable]: `${process.pid}@${hostname()}`,
});

/**
 * Calls `gone` when the launcher that started this process has ended, for example by SIGKILL. Without its launcher,
 * nothing would stop or restart this process. Does nothing if no launcher runs on this machine.
 *
 * @returns a function that stops the watch.
 */
export const whenLauncherIsGone = (gone: () => void, env: NodeJS.ProcessEnv = process.env): (() => void) => {
  const [, pid, host] = /^(\d+)@(.+)$/.exec(env[launcherVariable] ?? "") ?? [];
  if (pid === undefined || host !== hostname()) return () => undefined;
  const timer = setInterval(() => {
    if (isRunning(Number(pid))) return;
    clearInterval(timer);
    gone();
  }, pollIntervalMilliseconds).unref();
  return () => clearInterval(timer);
};

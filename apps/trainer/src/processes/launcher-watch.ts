import { hostname } from "node:os";
import { isRunning } from "./process-status.ts";

/** Environment variable that names the process of `skein-train launch`: `<pid>@<host>`. */
const launcherVariable = "SKEIN_LAUNCHER";

const pollIntervalMilliseconds = 500;

/** Environment variables that a launcher sets for the processes that it starts. */
export const launcherVariables = (): Readonly<Record<string, string>> => ({
  [launcherVariable]: `${process.pid}@${hostname()}`,
});

/**
 * Calls `gone` once the launcher that started this process has ended, such as after SIGKILL: then nothing would stop or
 * restart this process. Without a launcher on this machine nothing is watched.
 *
 * @returns a function that ends the watch.
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

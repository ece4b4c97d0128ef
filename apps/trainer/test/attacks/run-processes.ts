import { readdirSync, readFileSync } from "node:fs";

const mark = "SKEIN_TEST_ATTACKED_RUN";

/**
 * Returns the environment variable that marks all processes of a run. The first process passes the variable on to its
 * child processes.
 */
export const markOf = (id: string): Readonly<Record<string, string>> => ({ [mark]: id });

/** Returns the ids of live processes started by a run, directly or indirectly. Linux only. */
export const processesOf = (id: string): number[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, "latin1").includes(`${mark}=${id}`);
      } catch {
        return false; // the process has ended in the meantime, or belongs to another user
      }
    });

/** Sends a signal to processes, some of which may have ended. */
export const signalAll = (pids: readonly number[], signal: NodeJS.Signals): void => {
  for (const pid of pids)
    try {
      process.kill(pid, signal);
    } catch {
      // the process has ended
    }
};

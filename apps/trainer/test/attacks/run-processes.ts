import { readdirSync, readFileSync } from "node:fs";

const mark = "SKEIN_TEST_ATTACKED_RUN";

/** Environment of the first process of a run, which identifies all of its processes. */
export const markOf = (id: string): Readonly<Record<string, string>> => ({ [mark]: id });

/** Live processes started by a run, directly or not. Linux only. */
export const processesOf = (id: string): number[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, "latin1").includes(`${mark}=${id}`);
      } catch {
        return false; // it has ended in the meantime, or belongs to another user
      }
    });

/** Send a signal to processes of which some may have ended. */
export const signalAll = (pids: readonly number[], signal: NodeJS.Signals): void => {
  for (const pid of pids)
    try {
      process.kill(pid, signal);
    } catch {
      // it has ended
    }
};

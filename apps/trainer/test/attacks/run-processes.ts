import { readdirSync, readFileSync } from "node:fs";

const mark = "SKEIN_TEST_ATTACKED_RUN";

/** Environment of the first process of a run, by which all of its processes are found. */
export const markOf = (id: string): Readonly<Record<string, string>> => ({ [mark]: id });

/** Processes that were started by a run, directly or not, and are there. Linux. */
export const processesOf = (id: string): number[] =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, "latin1").includes(`${mark}=${id}`);
      } catch {
        return false; // it has ended meanwhile, or is another's
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

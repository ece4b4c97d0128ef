import { readFileSync } from "node:fs";

/** Status of a process as reported by the system. Empty: the process has ended, or the system has no /proc. */
export interface ProcessStatus {
  readonly state?: string | undefined;
  /**
   * Start time of the process in the system's own unit. Distinguishes the process from a later process with the same
   * id.
   */
  readonly began?: string | undefined;
}

export const statusOf = (pid: number): ProcessStatus => {
  try {
    // The name of the process is in parentheses and may contain spaces; state and start time are fields 3 and 22.
    const fields = readFileSync(`/proc/${pid}/stat`, "latin1").split(") ").at(-1)!.split(" ");
    return { state: fields[0], began: fields[19] };
  } catch {
    return {};
  }
};

const isThere = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
};

/**
 * Whether a process runs. A killed process stays listed until its parent collects its exit status, but does nothing any
 * more.
 */
export const isRunning = (pid: number, { state }: ProcessStatus = statusOf(pid)): boolean =>
  isThere(pid) && state !== "Z" && state !== "X";

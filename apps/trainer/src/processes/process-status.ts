import { readFileSync } from "node:fs";

/** What the system reports of a process; empty if the process is gone or the system has no /proc. */
export interface ProcessStatus {
  readonly state?: string | undefined;
  /** When the process began, as the system counts it; a later process may have the same number. */
  readonly began?: string | undefined;
}

export const statusOf = (pid: number): ProcessStatus => {
  try {
    // The name of the process is in parentheses, and may hold spaces; these are the 3rd and the 22nd field.
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

/** Whether a process runs: a killed one stays listed until its parent asks for its end, but does nothing any more. */
export const isRunning = (pid: number, { state }: ProcessStatus = statusOf(pid)): boolean =>
  isThere(pid) && state !== "Z" && state !== "X";

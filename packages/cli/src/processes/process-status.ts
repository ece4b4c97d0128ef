import { readFileSync } from "node:fs";

/**
 * Status of a process as reported by the system. All fields are absent if the process has ended, or if the system has
 * no /proc.
 */
export interface ProcessStatus {
  readonly state?: string | undefined;
  /**
   * Start time of the process, in the unit of the system. Distinguishes the process from a later process with the same
   * id.
   */
  readonly began?: string | undefined;
}

export const statusOf = (pid: number): ProcessStatus => {
  try {
    // The process name is in parentheses and may contain spaces; state and start time are fields 3 and 22.
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
 * Whether a process is running. A killed process is listed until its parent reads its exit status, but counts as ended.
 */
export const isRunning = (pid: number, { state }: ProcessStatus = statusOf(pid)): boolean =>
  isThere(pid) && state !== "Z" && state !== "X";

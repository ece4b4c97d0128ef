/**
 * Time limits for the shutdown of a run in milliseconds, innermost first. Each limit is longer than the previous limit,
 * so that the process nearest to an error reports the error. (`failure-detection` of collectives decides when a rank
 * counts as lost.)
 */
export const timeLimits = {
  /** Wait for a stop signal to this process, after the same signal may have ended another process of the run. */
  ownSignal: 250,
  /**
   * Wait for the launcher to report the exit of a process, after the coordinator has lost the connection to the
   * process.
   */
  exitCode: 500,
  /**
   * Wait for a launched process to end on request before its ranks have begun. A wait inside MPI cannot be interrupted.
   */
  launchedProcess: 1000,
  /** Wait for a failed rank to report the reason, after other ranks have reported its loss. */
  ownReport: 1500,
  /** Wait for the threads of ranks to end by themselves. Afterwards, remaining threads are terminated. */
  threads: 5000,
  /** Wait for a process to end its threads and itself. Afterwards, the process is killed. */
  process: 8000,
} as const;

/**
 * Time limits for the shutdown of a run in milliseconds, innermost first. Each limit is longer than the previous limit,
 * so that the process nearest to an error reports the error. (`failure-detection` of collectives decides when a rank
 * counts as lost.)
 */
export const timeLimits = {
  /**
   * Time that the controller waits for a stop signal after a start failed or a process was lost. A signal sent to all
   * processes may have been the cause, and may reach the controller later.
   */
  ownSignal: 250,
  /**
   * Time that the controller waits for the exit code of a process, after the coordinator has lost the connection to the
   * process.
   */
  exitCode: 500,
  /**
   * Maximum time for a launched process to end on request before its ranks have begun. A wait inside MPI cannot be
   * interrupted.
   */
  launchedProcess: 1000,
  /**
   * Time that the controller waits for a failed rank to report the reason, after other ranks have reported the loss of
   * this rank.
   */
  ownReport: 1500,
  /** Maximum time for the threads of ranks to end by themselves. Afterwards, remaining threads are terminated. */
  threads: 5000,
  /** Maximum time for a process to end its threads and itself. Afterwards, the process is killed. */
  process: 8000,
} as const;

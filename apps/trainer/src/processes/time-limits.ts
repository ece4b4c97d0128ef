/**
 * Time limits for the end of a run in milliseconds, from the inside out. Each limit leaves room for the previous limit,
 * so that the process nearest to a fault reports it. (`failure-detection` of collectives decides when a rank counts as
 * lost.)
 */
export const timeLimits = {
  /** For a signal to this process after it has ended another process of the run: both may have received the signal. */
  ownSignal: 250,
  /** For the launcher's report of how a process ended, after the coordinator has lost that process. */
  exitCode: 500,
  /**
   * For a launched process that is asked to end before its ranks have begun: a wait inside MPI cannot be interrupted.
   */
  launchedProcess: 1000,
  /** For the rank that failed to report the reason, after its peers have reported its loss. */
  ownReport: 1500,
  /** For threads of ranks to end by themselves, before they are terminated. */
  threads: 5000,
  /** For a process to end its threads and itself, before it is killed. */
  process: 8000,
} as const;

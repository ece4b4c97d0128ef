/**
 * Milliseconds that the end of a run may take, from the inside out: each limit leaves room for the one before it, so
 * that whoever is nearest to a fault tells it. (When a rank counts as lost is not decided here: see
 * `failure-detection` of collectives.)
 */
export const timeLimits = {
  /** For a signal to this process, after it has ended another process of the run: both may have been sent it. */
  ownSignal: 250,
  /** For the launcher's word on how a process ended, after the coordinator has lost that process. */
  exitCode: 500,
  /** For a launched process that is asked to end before its ranks have begun: MPI cannot be called back from a wait. */
  launchedProcess: 1000,
  /** For the rank that failed to say why, after its peers have told that it is gone. */
  ownReport: 1500,
  /** For threads of ranks to end by themselves, before they are ended by force. */
  threads: 5000,
  /** For a process to see its threads out and end, before it is killed. */
  process: 8000,
} as const;

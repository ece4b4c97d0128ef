import { constants } from "node:os";
import { exitCodeOfSignal, exitCodes, RestartBudget, type StopCause, stopCodes } from "@skein/cli/node";

/** A started attempt to complete a run. `ended` resolves with the exit code. */
export interface Attempt {
  readonly ended: Promise<number>;
  /** Asks the attempt to save and end. */
  stop(): void;
}

export interface Supervision {
  /** Starts an attempt. `number` counts attempts from 0. Each attempt resumes from the newest checkpoint. */
  readonly start: (number: number) => Attempt | Promise<Attempt>;
  /** Maximum number of restarts without a newer checkpoint. */
  readonly maxRestarts: number;
  /** Returns the step of the newest checkpoint. */
  readonly reached: () => number;
  /** Resolves when a stop is requested. */
  readonly interrupted: Promise<StopCause>;
  readonly note: (line: string) => void;
  /**
   * Pause before a restart, in milliseconds. Each further restart without progress doubles the pause, up to 30 times
   * this value. After a failure that may disappear with time, such as a full disk, the longest pause is used
   * immediately. Default: 1000.
   */
  readonly pauseMilliseconds?: number;
}

const longestPauses = 30;

/** Exit code of ranks that received a stop signal before they had installed a signal handler. */
const endedByStop = 128 + constants.signals.SIGUSR2;

/**
 * Returns the exit code of a launcher whose ranks ended with `code`. If the ranks stopped on request, returns the code
 * of the signal.
 */
export const codeAfter = (code: number, stopCause: StopCause | undefined): number =>
  stopCause !== undefined && [...stopCodes, endedByStop].includes(code) ? exitCodeOfSignal(stopCause) : code;

/**
 * Runs attempts until an attempt succeeds or fails with a usage error, a stop is requested, or no restarts remain. A
 * usage error is not retried, because it would occur again.
 *
 * @returns the exit code of the last attempt; if the run was stopped, the code of the signal.
 */
export const supervise = async ({
  start,
  maxRestarts,
  reached,
  interrupted,
  note,
  pauseMilliseconds = 1000,
}: Supervision): Promise<number> => {
  const budget = new RestartBudget(maxRestarts, reached());
  let cause: StopCause | undefined;
  const stopped = interrupted.then((signal) => {
    cause = signal;
  });
  for (let number = 0; ; number++) {
    const attempt = await start(number);
    if (cause !== undefined) attempt.stop();
    else void stopped.then(() => attempt.stop());
    const code = await attempt.ended;
    const stopCause = cause as StopCause | undefined; // the value changes during the wait
    if (code === exitCodes.ok || code === exitCodes.usage) return code;
    if (stopCause !== undefined) return codeAfter(code, stopCause);
    const restarts = budget.spend(reached());
    if (restarts === undefined) {
      note(`the ranks ended with code ${code}, and all restarts (${maxRestarts}) are used up`);
      return code;
    }
    const isTemporary = code === exitCodes.temporary;
    const rest = pauseMilliseconds * (isTemporary ? longestPauses : Math.min(2 ** (restarts - 1), longestPauses));
    const when = isTemporary ? ` in ${rest / 1000} s, because the failure may be temporary` : "";
    note(
      `the ranks ended with code ${code}; restarting from the newest checkpoint${when} (restart ${restarts} of ${maxRestarts})`,
    );
    await pause(rest, stopped);
    if ((cause as StopCause | undefined) !== undefined) return exitCodeOfSignal(cause!);
  }
};

const pause = async (milliseconds: number, stopped: Promise<void>): Promise<void> => {
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([
    stopped,
    new Promise<void>((resolve) => {
      timer = setTimeout(resolve, milliseconds);
    }),
  ]);
  clearTimeout(timer);
};

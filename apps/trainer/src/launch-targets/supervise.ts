import { constants } from "node:os";
import { exitCodes, stopCodes } from "../errors.ts";
import { RestartBudget } from "../processes/restart-budget.ts";
import { exitCodeOfSignal, type StopCause } from "../processes/interrupts.ts";

/** A started attempt. */
export interface Attempt {
  readonly ended: Promise<number>;
  /** Ask it to save and end. */
  stop(): void;
}

export interface Supervision {
  /** Start an attempt; `number` counts from 0. Each goes on from the newest checkpoint by itself. */
  readonly start: (number: number) => Attempt | Promise<Attempt>;
  /** Restarts without a newer checkpoint. */
  readonly maxRestarts: number;
  /** The step of the newest checkpoint. */
  readonly reached: () => number;
  /** Resolves when somebody asks for an end. */
  readonly interrupted: Promise<StopCause>;
  readonly note: (line: string) => void;
  /**
   * Milliseconds before a restart; each further one waits twice as long, up to thirty times. What only time can cure,
   * such as a full disk, is given the longest pause at once. Default: 1000.
   */
  readonly pauseMilliseconds?: number;
}

const longestPauses = 30;

/** Of ranks that had not begun, and so did not handle the signal by which launchers ask them to stop. */
const endedByStop = 128 + constants.signals.SIGUSR2;

/**
 * The exit code of a launcher whose ranks ended with `code`: that of the signal if somebody asked for a stop, and the
 * ranks stopped.
 */
export const codeAfter = (code: number, asked: StopCause | undefined): number =>
  asked !== undefined && [...stopCodes, endedByStop].includes(code) ? exitCodeOfSignal(asked) : code;

/**
 * Run attempts until one succeeds, is of no use, or restarts are used up. Wrong use is not tried again: it would fail
 * the same way.
 *
 * @returns the exit code of the last attempt; that of the signal where the run was stopped.
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
    const asked = cause as StopCause | undefined; // it changes during the wait
    if (code === exitCodes.ok || code === exitCodes.usage) return code;
    if (asked !== undefined) return codeAfter(code, asked);
    const restarts = budget.spend(reached());
    if (restarts === undefined) {
      note(`the ranks ended with code ${code}, and all restarts (${maxRestarts}) are used up`);
      return code;
    }
    const passing = code === exitCodes.temporary;
    const rest = pauseMilliseconds * (passing ? longestPauses : Math.min(2 ** (restarts - 1), longestPauses));
    const when = passing ? ` in ${rest / 1000} s, as time may cure that` : "";
    note(
      `the ranks ended with code ${code}; going on from the newest checkpoint${when} (restart ${restarts} of ${maxRestarts})`,
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

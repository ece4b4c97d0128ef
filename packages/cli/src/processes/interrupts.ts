import { constants } from "node:os";
import { whenLauncherIsGone } from "./launcher-watch.ts";

/** Signal on which a run saves and stops. */
export type StopCause = "SIGINT" | "SIGTERM" | "SIGHUP" | "SIGQUIT";

/** Returns the exit code of a process that saved and stopped on a signal: 128 + signal number. */
export const exitCodeOfSignal = (cause: StopCause): number => 128 + constants.signals[cause];

/**
 * Signals that ask a process to save and stop. SIGUSR2 is treated as SIGTERM: launchers forward SIGUSR2, because mpirun
 * kills its ranks when mpirun itself receives SIGTERM.
 */
const signals = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR2"] as const;
type StopSignal = (typeof signals)[number];

/**
 * Signals within this time count as one stop request: timeout(1), npm and service managers signal both a process and
 * its process group, and a closed terminal sends SIGHUP twice.
 */
const sameRequestMilliseconds = 250;

/**
 * Calls `first` on the first Ctrl-C, SIGTERM, SIGHUP, SIGQUIT or SIGUSR2, or when the launcher of this process has
 * ended. A second signal ends the process immediately. Signals within the first 250 ms count as one request. A SIGUSR2
 * after another signal also belongs to the first request, because it comes from a launcher that received the same
 * signal.
 *
 * @param note Receives a line for the user after the first signal, when a second signal would end the process.
 * @returns a function that removes the signal handlers.
 */
export const onInterrupt = (first: (cause: StopCause) => void, note?: (line: string) => void): (() => void) => {
  let firstSignal: StopSignal | undefined;
  let countsAsSecond = false;
  let timer: NodeJS.Timeout | undefined;
  const handler = (signal: StopSignal): void => {
    const cause: StopCause = signal === "SIGUSR2" ? "SIGTERM" : signal;
    if (firstSignal !== undefined) {
      if (countsAsSecond && (signal !== "SIGUSR2" || firstSignal === "SIGUSR2")) process.exit(exitCodeOfSignal(cause));
      return;
    }
    firstSignal = signal;
    timer = setTimeout(() => {
      countsAsSecond = true;
      note?.("once more to exit at once");
    }, sameRequestMilliseconds).unref();
    first(cause);
  };
  for (const signal of signals) process.on(signal, handler);
  const ignoreLauncher = whenLauncherIsGone(() => handler("SIGHUP"));
  return () => {
    clearTimeout(timer);
    ignoreLauncher();
    for (const signal of signals) process.off(signal, handler);
  };
};

import { constants } from "node:os";
import { whenLauncherIsGone } from "./launcher-watch.ts";

/** A signal that asks a run to save and stop. */
export type StopCause = "SIGINT" | "SIGTERM" | "SIGHUP" | "SIGQUIT";

/** Exit code of a process that saved and stopped on a signal: 128 + the number of the signal. */
export const exitCodeOfSignal = (cause: StopCause): number => 128 + constants.signals[cause];

/**
 * SIGUSR2 counts as SIGTERM: launchers forward SIGUSR2, and mpirun kills its ranks when mpirun itself is terminated.
 */
const signals = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR2"] as const;
type StopSignal = (typeof signals)[number];

/**
 * One request to stop may arrive as several signals: timeout(1), npm and service managers signal a process and its
 * group, and a terminal that is closed sends SIGHUP twice.
 */
const sameRequestMilliseconds = 250;

/**
 * Calls `first` on the first Ctrl-C, SIGTERM, SIGHUP, SIGQUIT or SIGUSR2, or when the launcher of this process has
 * ended. A second signal ends the process at once. Signals of the first 250 ms count as one; a SIGUSR2 after another
 * signal comes from a launcher that was signalled too, and counts as the same request.
 *
 * @param note reports, in a line, when a second signal counts.
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

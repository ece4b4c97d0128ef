import { exitCodes } from "../errors.ts";

export type StopCause = "SIGINT" | "SIGTERM";

export const exitCodeOfSignal = (cause: StopCause): number =>
  cause === "SIGINT" ? exitCodes.interrupted : exitCodes.terminated;

/** mpirun hands SIGUSR2 on to its ranks, where it takes a SIGTERM for itself and kills them. */
const signals = ["SIGINT", "SIGTERM", "SIGUSR2"] as const;

/**
 * Call `first` on the first Ctrl-C, SIGTERM or SIGUSR2; a second one ends the process at once.
 *
 * @returns a function that gives the signals back.
 */
export const onInterrupt = (first: (cause: StopCause) => void): (() => void) => {
  let asked = false;
  const handler = (signal: NodeJS.Signals): void => {
    const cause: StopCause = signal === "SIGINT" ? "SIGINT" : "SIGTERM";
    if (asked) process.exit(exitCodeOfSignal(cause));
    asked = true;
    first(cause);
  };
  for (const signal of signals) process.on(signal, handler);
  return () => {
    for (const signal of signals) process.off(signal, handler);
  };
};

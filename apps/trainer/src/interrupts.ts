import { exitCodes } from "./errors.ts";

export type StopCause = "SIGINT" | "SIGTERM";

export const exitCodeOfSignal = (cause: StopCause): number => (cause === "SIGINT" ? exitCodes.interrupted : exitCodes.terminated);

/**
 * Call `first` on the first Ctrl-C or SIGTERM; a second one ends the process at once.
 *
 * @returns a function that gives the signals back.
 */
export const onInterrupt = (first: (cause: StopCause) => void): (() => void) => {
  let asked = false;
  const handler = (signal: NodeJS.Signals): void => {
    const cause: StopCause = signal === "SIGTERM" ? "SIGTERM" : "SIGINT";
    if (asked) process.exit(exitCodeOfSignal(cause));
    asked = true;
    first(cause);
  };
  process.on("SIGINT", handler).on("SIGTERM", handler);
  return () => void process.off("SIGINT", handler).off("SIGTERM", handler);
};

import { type Clock, systemClock } from "../clock.ts";
import type { RendezvousEvent } from "./coordinator-options.ts";

/** Lines of strangers that a window of time may hold. */
const linesPerWindow = 8;
const windowMilliseconds = 10_000;
/** Of a line, which may repeat what a stranger said. */
const longestLine = 400;

/**
 * Tells of strangers in a log that they cannot fill: a few lines in ten seconds, and then one that says how many were
 * left out.
 */
export class StrangerLog {
  readonly #say: (event: RendezvousEvent) => void;
  readonly #clock: Clock;
  #said = 0;
  #leftOut = 0;
  #cancel: (() => void) | undefined;

  constructor(say: (event: RendezvousEvent) => void, clock: Clock = systemClock) {
    this.#say = say;
    this.#clock = clock;
  }

  note(kind: "dropped" | "refused", message: string): void {
    this.#cancel ??= this.#clock.after(windowMilliseconds, () => this.flush());
    if (this.#said < linesPerWindow) {
      this.#said++;
      this.#say({ kind, message: message.length > longestLine ? `${message.slice(0, longestLine)}…` : message });
    } else this.#leftOut++;
  }

  /** End the window: say how many lines were left out. */
  flush(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    const leftOut = this.#leftOut;
    this.#said = 0;
    this.#leftOut = 0;
    if (leftOut > 0)
      this.#say({
        kind: "dropped",
        message: `${leftOut} more connections of strangers were turned away in ${windowMilliseconds / 1000} s`,
      });
  }
}

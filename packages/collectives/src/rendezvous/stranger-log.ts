import { type Clock, systemClock } from "../clock.ts";
import type { RendezvousEvent } from "./coordinator-options.ts";

/** Maximum number of lines about strangers per window of time. */
const linesPerWindow = 8;
const windowMilliseconds = 10_000;
/** Maximum length of a line, which may quote a stranger. */
const longestLine = 400;

/**
 * Logs connections of strangers without letting them fill the log: a few lines per ten seconds, then one line with the
 * number of omitted lines.
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

  /** Ends the window, and logs the number of omitted lines. */
  flush(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    const leftOut = this.#leftOut;
    this.#said = 0;
    this.#leftOut = 0;
    if (leftOut > 0)
      this.#say({
        kind: "dropped",
        message: `${leftOut} more connections of strangers were refused in ${windowMilliseconds / 1000} s`,
      });
  }
}

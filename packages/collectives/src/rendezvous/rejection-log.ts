import { type Clock, systemClock } from "../clock.ts";
import type { RendezvousEvent } from "./coordinator-options.ts";

/** Maximum number of log lines per time window. */
const linesPerWindow = 8;
const windowMilliseconds = 10_000;
/** Maximum length of a log line in characters. Lines are limited because they can quote unauthenticated input. */
const longestLine = 400;

/**
 * Logs rejected connections with a limited rate: at most `linesPerWindow` lines per ten seconds, then one line with the
 * number of omitted lines.
 */
export class RejectionLog {
  readonly #emit: (event: RendezvousEvent) => void;
  readonly #clock: Clock;
  #numLogged = 0;
  #leftOut = 0;
  #cancel: (() => void) | undefined;

  constructor(emit: (event: RendezvousEvent) => void, clock: Clock = systemClock) {
    this.#emit = emit;
    this.#clock = clock;
  }

  note(kind: "dropped" | "refused", message: string): void {
    this.#cancel ??= this.#clock.after(windowMilliseconds, () => this.flush());
    if (this.#numLogged < linesPerWindow) {
      this.#numLogged++;
      this.#emit({ kind, message: message.length > longestLine ? `${message.slice(0, longestLine)}…` : message });
    } else this.#leftOut++;
  }

  /** Ends the time window, and logs the number of omitted lines. */
  flush(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    const leftOut = this.#leftOut;
    this.#numLogged = 0;
    this.#leftOut = 0;
    if (leftOut > 0)
      this.#emit({
        kind: "dropped",
        message: `${leftOut} more unauthenticated connections were refused in ${windowMilliseconds / 1000} s`,
      });
  }
}
